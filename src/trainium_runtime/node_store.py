"""Reads the node records, the Auto Scaling group and its instances, and reads and writes the membership.

Callers pass the clients: the Lambda functions and the command line create clients and handle errors differently.
"""

import logging
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from trainium_runtime.errors import ABSENT_OBJECT, CHANGED_OBJECT
from trainium_wire.keys import MEMBERSHIP_KEY, key_instance
from trainium_wire.membership import Membership
from trainium_wire.node_record import LARGEST_RECORD, StoredRecord, stored_record

_READERS = 16
_MAX_RECORDS = 5_000


class NoGroupError(Exception):
    """The Auto Scaling group does not exist."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The state of an Auto Scaling group.

    Attributes:
        desired: Desired number of instances.
        instances: IDs of the instances that are not being terminated or detached.
        leaving: Those of `instances` that are unhealthy, which the group will replace.
        suspended: Suspended processes.
        launches: The group's launch template and version, as `template_version`.
        launched: Launch template and version of each of `instances`, by ID.
        total: Number of all instances, including those that are being terminated or detached.
    """

    desired: int
    instances: tuple[str, ...]
    leaving: frozenset[str]
    suspended: tuple[str, ...] = ()
    launches: str = ""
    launched: Mapping[str, str] = field(default_factory=dict[str, str])
    total: int = 0


@dataclass(frozen=True, kw_only=True)
class StoredMembership:
    """The membership and its ETag in S3.

    Attributes:
        etag: ETag of the object; None if there is no object.
    """

    membership: Membership
    etag: str | None


def describe_group(autoscaling: Any, name: str) -> Group:
    """Describe an Auto Scaling group.

    Raises:
        NoGroupError: The group does not exist.
    """
    group = find_group(autoscaling, name)
    if group is None:
        raise NoGroupError(f"the Auto Scaling group {name} does not exist")
    return group


def find_group(autoscaling: Any, name: str) -> Group | None:
    """Describe an Auto Scaling group. None if it does not exist."""
    groups = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
    if not groups:
        return None
    staying = [i for i in groups[0]["Instances"] if not i["LifecycleState"].startswith(("Terminat", "Detach"))]
    return Group(
        desired=groups[0]["DesiredCapacity"],
        instances=tuple(i["InstanceId"] for i in staying),
        leaving=frozenset(i["InstanceId"] for i in staying if i["HealthStatus"] != "Healthy"),
        suspended=tuple(sorted(process["ProcessName"] for process in groups[0].get("SuspendedProcesses", []))),
        launches=template_version(groups[0]),
        launched={i["InstanceId"]: template_version(i) for i in staying},
        total=len(groups[0]["Instances"]),
    )


def template_version(described: Mapping[str, Any]) -> str:
    """`ID:version` of the launch template of a group or of one of its instances, from Auto Scaling's description."""
    template = described.get("LaunchTemplate", {})
    return f"{template.get('LaunchTemplateId')}:{template.get('Version')}"


def describe_instances(ec2: Any, group_name: str) -> Mapping[str, Any]:
    """EC2's description of the instances of a group, by ID.

    They are filtered by tag, because a filter accepts at most 200 IDs.
    """
    filters = [{"Name": "tag:aws:autoscaling:groupName", "Values": [group_name]}]
    pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
    return {i["InstanceId"]: i for page in pages for entry in page["Reservations"] for i in entry["Instances"]}


class NodeStore:
    """The records and the membership in a bucket. Records that have not changed are read only once.

    Args:
        s3: The S3 client.
        bucket: Name of the bucket.
        prefix: Folder of the records, without a slash at the end.
    """

    def __init__(self, s3: Any, bucket: str, prefix: str) -> None:
        self._s3, self._bucket, self._prefix = s3, bucket, prefix
        self._known: dict[str, tuple[str, StoredRecord]] = {}

    def record_instance(self, key: str) -> str | None:
        """The instance ID in the key of a record; None for any other key."""
        return key_instance(key, self._prefix)

    def records(self, instances: Collection[str] | None = None) -> Mapping[str, StoredRecord]:
        """The records by instance ID.

        Args:
            instances: IDs of the instances whose records are read. Default: the _MAX_RECORDS objects that were written
                last.
        """
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=f"{self._prefix}/")
        listed = sorted(
            (item for page in pages for item in page.get("Contents", [])), key=lambda item: item["LastModified"]
        )
        items = [(self.record_instance(item["Key"]), item) for item in listed]
        items = items[-_MAX_RECORDS:] if instances is None else [each for each in items if each[0] in instances]
        changed = [(i, item) for i, item in items if i and self._known.get(i, ("",))[0] != item["ETag"]]
        with ThreadPoolExecutor(_READERS) as readers:
            for (instance, item), stored in zip(changed, readers.map(self._read, changed), strict=True):
                self._known[instance] = (item["ETag"], stored)
        self._known = {instance: self._known[instance] for instance, _ in items if instance}
        return {instance: stored for instance, (_, stored) in self._known.items()}

    def membership(self) -> StoredMembership:
        """The membership; empty if it does not exist or cannot be parsed."""
        from botocore.exceptions import ClientError

        try:
            response = self._s3.get_object(Bucket=self._bucket, Key=MEMBERSHIP_KEY)
        except ClientError as error:
            if error.response["Error"]["Code"] in ABSENT_OBJECT:
                return StoredMembership(membership=Membership(), etag=None)
            raise
        try:
            membership = Membership.from_json(response["Body"].read().decode())
        except ValueError as error:
            logging.getLogger(__name__).warning("%s: %s", MEMBERSHIP_KEY, error)
            membership = Membership()
        return StoredMembership(membership=membership, etag=response["ETag"])

    def write_membership(self, membership: Membership, *, replacing: StoredMembership) -> bool:
        """Replace the membership.

        Args:
            membership: The new membership.
            replacing: The membership that was read.

        Returns:
            Whether it was written. It is not written if it has changed since it was read.
        """
        from botocore.exceptions import ClientError

        unchanged = {"IfMatch": replacing.etag} if replacing.etag else {"IfNoneMatch": "*"}
        body, content_type = membership.to_json().encode(), "application/json"
        try:
            self._s3.put_object(
                Bucket=self._bucket, Key=MEMBERSHIP_KEY, Body=body, ContentType=content_type, **unchanged
            )
        except ClientError as error:
            if error.response["Error"]["Code"] in CHANGED_OBJECT:
                return False
            raise
        return True

    def _read(self, listed: tuple[str, Mapping[str, Any]]) -> StoredRecord:
        instance, item = listed
        text = None
        if item["Size"] <= LARGEST_RECORD:
            body = self._s3.get_object(Bucket=self._bucket, Key=item["Key"])["Body"].read(LARGEST_RECORD)
            text = body.decode(errors="replace")
        return stored_record(instance, text, item["LastModified"])
