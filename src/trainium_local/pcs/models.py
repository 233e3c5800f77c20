"""The resources of AWS PCS: active at once, where AWS takes minutes."""

from collections.abc import Iterator, Mapping
from typing import Any

from boto3.session import Session
from moto.core.base_backend import BackendDict, BaseBackend
from moto.core.resource_tagging import TaggableResourcesMixin, TaggedResource
from moto.core.utils import unix_time
from moto.ec2 import ec2_backends
from moto.moto_api._internal import mock_random
from moto.utilities.tagging_service import TaggingService

from trainium_core.facts import facts
from trainium_local.pcs.instances import end_all, hold_minimum
from trainium_local.services.errors import refusal

Fields = dict[str, Any]

CLUSTER, GROUP, QUEUE = "cluster", "computenodegroup", "queue"
_IDENTIFIERS = {GROUP: "computeNodeGroupIdentifier", QUEUE: "queueIdentifier"}


class PcsBackend(TaggableResourcesMixin, BaseBackend):
    """The clusters of a region with their groups and queues, as the API shows them."""

    SERVICE_NAMESPACE = "pcs"

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.clusters: dict[str, Fields] = {}
        self.parts: dict[str, dict[str, Fields]] = {GROUP: {}, QUEUE: {}}
        self.tagger = TaggingService()

    def iter_tagged_resources(self) -> Iterator[TaggedResource]:
        """Resources for the Resource Groups Tagging API."""
        for kind, resources in ({CLUSTER: self.clusters} | self.parts).items():
            for one in resources.values():
                tags = self.tagger.get_tag_dict_for_resource(one["arn"])
                yield TaggedResource(arn=one["arn"], tags=tags, resource_type=f"pcs:{kind}")

    def create_cluster(self, given: Fields) -> Fields:
        _refuse_taken(given["clusterName"], self.clusters.values(), CLUSTER)
        if len(self.clusters) >= facts()["pcs"]["quotas"]["clusters"]:
            raise refusal("PcsQuota", what="clusters")
        if given["scheduler"]["version"] not in facts()["pcs"]["versions"]:
            raise refusal("PcsVersion", version=given["scheduler"]["version"])
        made = self._made(CLUSTER, given["clusterName"], given, drop=("clusterName",))
        made["endpoints"] = [{"type": "SLURMCTLD", "privateIpAddress": "10.42.0.9", "port": "6817"}]
        self.clusters[made["id"]] = made
        return made

    def cluster(self, given: Fields) -> Fields:
        """The cluster that a request names by its name or ID."""
        return _named(given["clusterIdentifier"], self.clusters.values(), CLUSTER)

    def update_cluster(self, given: Fields) -> Fields:
        return _updated(self.cluster(given), given)

    def delete_cluster(self, given: Fields) -> None:
        cluster = self.cluster(given)
        if any(self._of(kind, cluster) for kind in self.parts):
            raise refusal("PcsClusterInUse", of=cluster["name"])
        del self.clusters[cluster["id"]]

    def create_group(self, given: Fields) -> Fields:
        scaling = given["scalingConfiguration"]
        if scaling["minInstanceCount"] > scaling["maxInstanceCount"]:
            raise refusal("PcsScaling")
        template = given.get("customLaunchTemplate", {}).get("id")
        if template:
            ec2_backends[self.account_id][self.region_name].get_launch_template(template)
        made = self._create_part(GROUP, given["computeNodeGroupName"], given)
        hold_minimum(self.account_id, self.region_name, made)
        return made

    def create_queue(self, given: Fields) -> Fields:
        return self._create_part(QUEUE, given["queueName"], given)

    def part(self, kind: str, given: Fields) -> Fields:
        """The group or queue that a request names."""
        return _named(given[_IDENTIFIERS[kind]], self._of(kind, self.cluster(given)), kind)

    def update_part(self, kind: str, given: Fields) -> Fields:
        part = _updated(self.part(kind, given), given)
        if kind == GROUP:
            hold_minimum(self.account_id, self.region_name, part)
        return part

    def delete_part(self, kind: str, given: Fields) -> None:
        part = self.part(kind, given)
        queues = self._of(QUEUE, self.cluster(given)) if kind == GROUP else []
        if any(one["computeNodeGroupId"] == part["id"] for queue in queues for one in _groups_of(queue)):
            raise refusal("PcsGroupInUse", of=part["name"])
        if kind == GROUP:
            end_all(self.account_id, self.region_name, part)
        del self.parts[kind][part["id"]]

    def list_parts(self, kind: str, given: Fields) -> list[Fields]:
        return self._of(kind, self.cluster(given))

    def _create_part(self, kind: str, name: str, given: Fields) -> Fields:
        cluster = self.cluster(given)
        there = self._of(kind, cluster)
        _refuse_taken(name, there, kind)
        if len(there) >= facts()["pcs"]["quotas"]["node_groups" if kind == GROUP else "queues"]:
            raise refusal("PcsQuota", what=f"{kind}s")
        for one in _groups_of(given):
            _named(one["computeNodeGroupId"], self._of(GROUP, cluster), GROUP)
        made = self._made(
            f"{CLUSTER}/{cluster['id']}/{kind}",
            name,
            given,
            drop=("clusterIdentifier", "computeNodeGroupName", "queueName"),
        )
        made["clusterId"] = cluster["id"]
        self.parts[kind][made["id"]] = made
        return made

    def _of(self, kind: str, cluster: Fields) -> list[Fields]:
        return [one for one in self.parts[kind].values() if one["clusterId"] == cluster["id"]]

    def _made(self, place: str, name: str, given: Fields, *, drop: tuple[str, ...]) -> Fields:
        made_id = f"pcs_{mock_random.get_random_string(10, lower_case=True)}"
        arn = f"arn:{self.partition}:pcs:{self.region_name}:{self.account_id}:{place}/{made_id}"
        if given.get("tags"):
            self.tagger.tag_resource(arn, TaggingService.convert_dict_to_tags_input(given["tags"]))
        now = unix_time()
        rest = {key: value for key, value in given.items() if key not in (*drop, "tags", "clientToken")}
        own = {"name": name, "id": made_id, "arn": arn, "status": "ACTIVE", "createdAt": now, "modifiedAt": now}
        return {**rest, **own}


def _groups_of(queue: Mapping[str, Any]) -> list[Mapping[str, str]]:
    return queue.get("computeNodeGroupConfigurations") or []


def _named(identifier: str, among: Any, kind: str) -> Fields:
    for one in among:
        if identifier in (one["id"], one["name"], one["arn"]):
            return one
    raise refusal("PcsNotFound", kind=kind, of=identifier)


def _refuse_taken(name: str, among: Any, kind: str) -> None:
    if any(one["name"] == name for one in among):
        raise refusal("PcsNameTaken", kind=kind, of=name)


def _updated(resource: Fields, given: Fields) -> Fields:
    changed = {key: value for key, value in given.items() if not key.endswith("Identifier") and key != "clientToken"}
    resource.update(changed, modifiedAt=unix_time())
    return resource


# botocore 1.44.5 lists no regions of AWS PCS.
pcs_backends = BackendDict(
    PcsBackend, "pcs", use_boto3_regions=False, additional_regions=Session().get_available_regions("ec2")
)
