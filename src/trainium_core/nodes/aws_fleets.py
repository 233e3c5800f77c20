"""Finds the record of a stack's nodes, whichever app deployed the stack."""

from trainium_core.engines.registry import ENGINES_WITH_NODES
from trainium_core.nodes.report import NodesNotCreatedError, NoFleetError
from trainium_core.stacks.aws_records import AwsRecords
from trainium_core.stacks.aws_stacks import AwsStacks
from trainium_core.stacks.deployed_stack import STABLE_STATUSES
from trainium_wire.stack_record import StackRecord


class AwsFleets(AwsStacks, AwsRecords):
    def fleet_record(self, stack: str) -> StackRecord | None:
        """The record of the nodes of a stack; None if the stack does not exist.

        Raises:
            NoFleetError: The stack has no nodes.
            NodesNotCreatedError: The stack has no record yet, or no longer.
            UnavailableError: A request failed or was denied.
        """
        records = self.stack_records(stack)
        found = next((record for record in records if record.engine in ENGINES_WITH_NODES), None)
        if found is not None:
            return found
        deployed = self.deployed_stack(stack)
        if deployed is None:
            return None
        if records or deployed.status in STABLE_STATUSES:
            raise NoFleetError(f"the stack {stack} has no nodes of a cluster")
        raise NodesNotCreatedError(stack, deployed.status)
