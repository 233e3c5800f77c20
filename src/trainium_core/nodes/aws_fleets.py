"""Finds the group and the records of a stack's nodes, whichever app deployed the stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainium_core.compile_cache.location import buckets_in
from trainium_core.engines.registry import CLUSTER, service_nodes
from trainium_core.naming import GROUP_OUTPUT, RECORDS_OUTPUT
from trainium_core.nodes.fleet import DeployedFleet, fleets_in
from trainium_core.stacks.aws_stacks import AwsStacks
from trainium_core.stacks.cluster_resources import TemplateResources
from trainium_core.stacks.deployed_stack import DeployedStack
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import UnavailableError


@dataclass(frozen=True, kw_only=True)
class FleetResources:
    """Where the nodes of a stack are found.

    Attributes:
        group: Name of the Auto Scaling group; None until CloudFormation has created it, or with `service`.
        records_bucket: Bucket of the node records; None until CloudFormation has created it.
        service: The nodes, if a service runs them without an Auto Scaling group.
    """

    group: str | None
    records_bucket: str | None
    service: DeployedFleet | None = None


class NoFleetError(UnavailableError):
    """The template of a stack defines no nodes."""


def deployed_fleets(resources: TemplateResources, physical_ids: Mapping[str, str]) -> tuple[DeployedFleet, ...]:
    """The fleets of a template, of any engine.

    Args:
        resources: The resources of the template.
        physical_ids: Physical IDs of the existing resources, by logical ID.
    """
    of_services = (fleet for nodes in service_nodes() for fleet in nodes.fleets(resources, physical_ids))
    return (*fleets_in(resources, physical_ids), *of_services)


class AwsFleets(AwsStacks):
    """Finds the nodes of stacks.

    Caches the results of `fleet_resources` by stack ID and status, if the status ends in _COMPLETE.
    """

    def __init__(self, region: str, *, clients: Clients | None = None) -> None:
        super().__init__(region, clients=clients)
        self._resources: dict[tuple[str, str], FleetResources] = {}

    def fleets(self, stack: DeployedStack) -> Sequence[DeployedFleet]:
        """The nodes that a stack's template defines.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        resources = self.template_resources(stack.stack_id, stack.status)
        return deployed_fleets(resources, self._physical_ids(stack.stack_id))

    def fleet_resources(self, name: str, stack: DeployedStack) -> FleetResources:
        """Where the nodes of a stack are found, from its outputs, else from its template.

        Raises:
            NoFleetError: The template defines no nodes.
            UnavailableError: The template defines several groups of nodes, or a request failed or was denied.
        """
        state = (stack.stack_id, stack.status)
        if state not in self._resources:
            found = self._read_resources(name, stack)
            if not stack.status.endswith("_COMPLETE"):
                return found
            self._resources[state] = found
        return self._resources[state]

    def _read_resources(self, name: str, stack: DeployedStack) -> FleetResources:
        outputs = stack.outputs
        if RECORDS_OUTPUT in outputs and GROUP_OUTPUT in outputs:
            return FleetResources(group=outputs[GROUP_OUTPUT], records_bucket=outputs[RECORDS_OUTPUT])
        found = self.fleets(stack)
        if not found:
            raise NoFleetError(f"the stack {name} has no nodes of a cluster")
        if len(found) > 1:
            clusters = ", ".join(fleet.cluster for fleet in found)
            reason = f"the stack {name} has {len(found)} groups of nodes, of these clusters: {clusters}"
            raise UnavailableError(f"{reason}; deploy each group in its own stack")
        fleet = found[0]
        service = None if fleet.engine == CLUSTER.key else fleet
        return FleetResources(group=fleet.group, records_bucket=fleet.records_bucket, service=service)

    def cache_buckets(self, stack: DeployedStack) -> Sequence[str]:
        """The buckets of compile caches in a stack's template. Raises UnavailableError."""
        names = buckets_in(self.template_resources(stack.stack_id, stack.status))
        if not names:
            return []
        physical_ids = self._physical_ids(stack.stack_id)
        return [physical_ids[name] for name in names if name in physical_ids]

    def _physical_ids(self, stack_id: str) -> Mapping[str, str]:
        return {
            entry["LogicalResourceId"]: entry["PhysicalResourceId"]
            for entry in self.stack_resources(stack_id)
            if entry.get("PhysicalResourceId") and entry["ResourceStatus"] != "DELETE_COMPLETE"
        }
