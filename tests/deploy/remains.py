"""Resources that a cluster may leave outside its stacks, and similar ones of others."""

import json
from dataclasses import dataclass
from typing import Any

from tests.deploy.account import Account, outputs
from trainium_core.naming import CACHE_PREFIX, STACK_NAME
from trainium_runtime.naming import CLUSTER_TAG, EMPTY_AT_DELETE_TAG

OWN_CLUSTER, OTHER_CLUSTER = "trn-pilot", "trn-pilot-2"
FOREIGN_STACK = f"{STACK_NAME}-dev"
FOREIGN_BUCKET, FOREIGN_KEY = "their-trn-pilot-data", "weights.bin"
FOREIGN_GROUPS = (f"/aws/lambda/{FOREIGN_STACK}-Controller-1A2B", f"{STACK_NAME}-theirs")
_FOREIGN_TEMPLATE = {
    "Resources": {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "their-topic"}}},
}


def _tags(cluster: str) -> list[dict[str, str]]:
    return [{"Key": CLUSTER_TAG, "Value": cluster}]


def leave_remains(account: Account) -> None:
    """Create what a cluster can leave in its buckets and outside its stacks."""
    cluster = account.cluster()
    s3, logs, ssm = (account.aws.client(name) for name in ("s3", "logs", "ssm"))
    cache = outputs(cluster)["CompileCache"].split("/")[2]
    s3.put_bucket_versioning(Bucket=cache, VersioningConfiguration={"Status": "Enabled"})
    for body in (b"first", b"second"):
        s3.put_object(Bucket=cache, Key=f"{CACHE_PREFIX}/graph.neff", Body=body)
    s3.delete_object(Bucket=cache, Key=f"{CACHE_PREFIX}/graph.neff")
    s3.create_multipart_upload(Bucket=cache, Key=f"{CACHE_PREFIX}/large.neff")
    (function, *_) = cluster.ids("AWS::Lambda::Function")
    logs.create_log_group(logGroupName=f"/aws/lambda/{function}")
    logs.create_log_group(logGroupName=f"{STACK_NAME}-nodes", tags={CLUSTER_TAG: OWN_CLUSTER})
    ssm.put_parameter(Name="/pilot/note", Value="x", Type="String", Tags=_tags(OWN_CLUSTER))
    _snapshot(account, _tags(OWN_CLUSTER))
    (subnet, *_) = cluster.ids("AWS::EC2::Subnet")
    _interface(account, subnet, _tags(OWN_CLUSTER))


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """Resources of others."""

    account: Account
    snapshot_ids: tuple[str, ...]
    interface_ids: tuple[str, ...]

    def state(self) -> str:
        """Everything that the services return about these resources."""
        client = self.account.aws.client
        s3, logs = client("s3"), client("logs")
        groups = [
            group for name in FOREIGN_GROUPS for group in logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
        ]
        stacks = client("cloudformation").describe_stacks(StackName=FOREIGN_STACK)["Stacks"]
        interfaces = client("ec2").describe_network_interfaces(NetworkInterfaceIds=list(self.interface_ids))
        described = [
            s3.get_object(Bucket=FOREIGN_BUCKET, Key=FOREIGN_KEY)["Body"].read().hex(),
            s3.get_bucket_tagging(Bucket=FOREIGN_BUCKET)["TagSet"],
            groups,
            client("ssm").get_parameter(Name="/theirs/note")["Parameter"],
            client("ec2").describe_snapshots(SnapshotIds=list(self.snapshot_ids))["Snapshots"],
            interfaces["NetworkInterfaces"],
            stacks,
            client("sns").list_topics()["Topics"],
        ]
        return json.dumps(described, default=str, sort_keys=True, indent=1)


def create_foreign_resources(account: Account) -> Foreign:
    """Create resources like those that a teardown deletes, but of another cluster or without tags."""
    client = account.aws.client
    s3 = client("s3")
    s3.create_bucket(Bucket=FOREIGN_BUCKET, CreateBucketConfiguration={"LocationConstraint": account.aws.region})
    tags = [*_tags(OTHER_CLUSTER), {"Key": EMPTY_AT_DELETE_TAG, "Value": "true"}]
    s3.put_bucket_tagging(Bucket=FOREIGN_BUCKET, Tagging={"TagSet": tags})
    s3.put_object(Bucket=FOREIGN_BUCKET, Key=FOREIGN_KEY, Body=bytes(range(256)))
    client("cloudformation").create_stack(
        StackName=FOREIGN_STACK, TemplateBody=json.dumps(_FOREIGN_TEMPLATE), Tags=_tags(OTHER_CLUSTER)
    )
    untagged, tagged = FOREIGN_GROUPS
    client("logs").create_log_group(logGroupName=untagged)
    client("logs").create_log_group(logGroupName=tagged, tags={CLUSTER_TAG: OTHER_CLUSTER})
    client("ssm").put_parameter(Name="/theirs/note", Value="y", Type="String", Tags=_tags(OTHER_CLUSTER))
    subnet = client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    return Foreign(
        account=account,
        snapshot_ids=(_snapshot(account, _tags(OTHER_CLUSTER)), _snapshot(account, [])),
        interface_ids=(_interface(account, subnet, _tags(OTHER_CLUSTER)), _interface(account, subnet, [])),
    )


def _snapshot(account: Account, tags: list[dict[str, str]]) -> str:
    ec2 = account.aws.client("ec2")
    volume: str = ec2.create_volume(AvailabilityZone=f"{account.aws.region}a", Size=1)["VolumeId"]
    options: dict[str, Any] = {"TagSpecifications": [{"ResourceType": "snapshot", "Tags": tags}]} if tags else {}
    snapshot_id: str = ec2.create_snapshot(VolumeId=volume, **options)["SnapshotId"]
    ec2.delete_volume(VolumeId=volume)
    return snapshot_id


def _interface(account: Account, subnet: str, tags: list[dict[str, str]]) -> str:
    options: dict[str, Any] = (
        {"TagSpecifications": [{"ResourceType": "network-interface", "Tags": tags}]} if tags else {}
    )
    made = account.aws.client("ec2").create_network_interface(SubnetId=subnet, **options)
    return made["NetworkInterface"]["NetworkInterfaceId"]
