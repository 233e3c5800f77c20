"""The resources of AWS PCS. They are active immediately; on AWS, they become active after minutes."""

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
    """The clusters of a region with their groups and queues, as the API returns them."""

    SERVICE_NAMESPACE = "pcs"

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.clusters: dict[str, Fields] = {}
        self.parts: dict[str, dict[str, Fields]] = {GROUP: {}, QUEUE: {}}
        self.tagger = TaggingService()

    def iter_tagged_resources(self) -> Iterator[TaggedResource]:
        """Resources for the Resource Groups Tagging API."""
        for kind, resources in ({CLUSTER: self.clusters} | self.parts).items():
            for resource in resources.values():
                tags = self.tagger.get_tag_dict_for_resource(resource["arn"])
                yield TaggedResource(arn=resource["arn"], tags=tags, resource_type=f"pcs:{kind}")

    def create_cluster(self, request: Fields) -> Fields:
        _refuse_taken(request["clusterName"], self.clusters.values(), CLUSTER)
        if len(self.clusters) >= facts()["pcs"]["quotas"]["clusters"]:
            raise refusal("PcsQuota", what="clusters")
        if request["scheduler"]["version"] not in facts()["pcs"]["versions"]:
            raise refusal("PcsVersion", version=request["scheduler"]["version"])
        cluster = self._new_resource(CLUSTER, request["clusterName"], request, drop=("clusterName",))
        cluster["endpoints"] = [{"type": "SLURMCTLD", "privateIpAddress": "10.42.0.9", "port": "6817"}]
        self.clusters[cluster["id"]] = cluster
        return cluster

    def cluster(self, request: Fields) -> Fields:
        """The cluster that a request names by its name, ID or ARN."""
        return _named(request["clusterIdentifier"], self.clusters.values(), CLUSTER)

    def update_cluster(self, request: Fields) -> Fields:
        return _updated(self.cluster(request), request)

    def delete_cluster(self, request: Fields) -> None:
        cluster = self.cluster(request)
        if any(self._parts(kind, cluster) for kind in self.parts):
            raise refusal("PcsClusterInUse", of=cluster["name"])
        del self.clusters[cluster["id"]]

    def create_group(self, request: Fields) -> Fields:
        scaling = request["scalingConfiguration"]
        if scaling["minInstanceCount"] > scaling["maxInstanceCount"]:
            raise refusal("PcsScaling")
        template = request.get("customLaunchTemplate", {}).get("id")
        if template:
            ec2_backends[self.account_id][self.region_name].get_launch_template(template)
        group = self._create_part(GROUP, request["computeNodeGroupName"], request)
        hold_minimum(self.account_id, self.region_name, group)
        return group

    def create_queue(self, request: Fields) -> Fields:
        return self._create_part(QUEUE, request["queueName"], request)

    def part(self, kind: str, request: Fields) -> Fields:
        """The group or queue that a request names."""
        return _named(request[_IDENTIFIERS[kind]], self._parts(kind, self.cluster(request)), kind)

    def update_part(self, kind: str, request: Fields) -> Fields:
        part = _updated(self.part(kind, request), request)
        if kind == GROUP:
            hold_minimum(self.account_id, self.region_name, part)
        return part

    def delete_part(self, kind: str, request: Fields) -> None:
        part = self.part(kind, request)
        queues = self._parts(QUEUE, self.cluster(request)) if kind == GROUP else []
        if any(
            configuration["computeNodeGroupId"] == part["id"]
            for queue in queues
            for configuration in _node_groups(queue)
        ):
            raise refusal("PcsGroupInUse", of=part["name"])
        if kind == GROUP:
            end_all(self.account_id, self.region_name, part)
        del self.parts[kind][part["id"]]

    def list_parts(self, kind: str, request: Fields) -> list[Fields]:
        return self._parts(kind, self.cluster(request))

    def _create_part(self, kind: str, name: str, request: Fields) -> Fields:
        cluster = self.cluster(request)
        there = self._parts(kind, cluster)
        _refuse_taken(name, there, kind)
        if len(there) >= facts()["pcs"]["quotas"]["node_groups" if kind == GROUP else "queues"]:
            raise refusal("PcsQuota", what=f"{kind}s")
        for configuration in _node_groups(request):
            _named(configuration["computeNodeGroupId"], self._parts(GROUP, cluster), GROUP)
        part = self._new_resource(
            f"{CLUSTER}/{cluster['id']}/{kind}",
            name,
            request,
            drop=("clusterIdentifier", "computeNodeGroupName", "queueName"),
        )
        part["clusterId"] = cluster["id"]
        self.parts[kind][part["id"]] = part
        return part

    def _parts(self, kind: str, cluster: Fields) -> list[Fields]:
        return [part for part in self.parts[kind].values() if part["clusterId"] == cluster["id"]]

    def _new_resource(self, place: str, name: str, request: Fields, *, drop: tuple[str, ...]) -> Fields:
        resource_id = f"pcs_{mock_random.get_random_string(10, lower_case=True)}"
        arn = f"arn:{self.partition}:pcs:{self.region_name}:{self.account_id}:{place}/{resource_id}"
        if request.get("tags"):
            self.tagger.tag_resource(arn, TaggingService.convert_dict_to_tags_input(request["tags"]))
        now = unix_time()
        rest = {key: value for key, value in request.items() if key not in (*drop, "tags", "clientToken")}
        own = {"name": name, "id": resource_id, "arn": arn, "status": "ACTIVE", "createdAt": now, "modifiedAt": now}
        return {**rest, **own}


def _node_groups(queue: Mapping[str, Any]) -> list[Mapping[str, str]]:
    return queue.get("computeNodeGroupConfigurations") or []


def _named(identifier: str, among: Any, kind: str) -> Fields:
    for resource in among:
        if identifier in (resource["id"], resource["name"], resource["arn"]):
            return resource
    raise refusal("PcsNotFound", kind=kind, of=identifier)


def _refuse_taken(name: str, among: Any, kind: str) -> None:
    if any(resource["name"] == name for resource in among):
        raise refusal("PcsNameTaken", kind=kind, of=name)


def _updated(resource: Fields, request: Fields) -> Fields:
    changed = {key: value for key, value in request.items() if not key.endswith("Identifier") and key != "clientToken"}
    resource.update(changed, modifiedAt=unix_time())
    return resource


# botocore 1.44.5 lists no regions of AWS PCS.
pcs_backends = BackendDict(
    PcsBackend, "pcs", use_boto3_regions=False, additional_regions=Session().get_available_regions("ec2")
)
