"""Puts a cluster to sleep and wakes it with the function that updates its stack."""

import json

from trainium_core.naming import ASLEEP_PARAMETER, FLEET_OUTPUT, VERIFIED_NODES_OUTPUT
from trainium_core.nodes.aws_control import AwsNodeControl
from trainium_core.sleep.state import Readiness, SleepState
from trainium_core.stacks.aws_events import AwsStackEvents
from trainium_runtime.aws_errors import write_errors
from trainium_runtime.errors import RequestRefusedError
from trainium_runtime.naming import CLUSTER_TAG


class AwsSleepControl(AwsStackEvents, AwsNodeControl):
    """The requests of `trn sleep` and `trn wake`."""

    def sleep_state(self, stack: str) -> SleepState | None:
        """The state of a stack; None if the stack does not exist. Raises UnavailableError."""
        deployed = self.deployed_stack(stack)
        if deployed is None:
            return None
        asleep = deployed.parameters.get(ASLEEP_PARAMETER)
        records = self.stack_records(stack)
        return SleepState(
            status=deployed.status,
            asleep=None if asleep is None else asleep == "true",
            cluster=records[0].cluster if records else deployed.tags.get(CLUSTER_TAG),
            created=deployed.created,
            groups=tuple(record.group for record in records if record.group),
        )

    def readiness(self, stack: str) -> Readiness | None:
        """The readiness of the fleet after the last update of the stack; None without the stack or its outputs.

        Raises UnavailableError.
        """
        deployed = self.deployed_stack(stack)
        if deployed is None or not {FLEET_OUTPUT, VERIFIED_NODES_OUTPUT} <= deployed.outputs.keys():
            return None
        summary, nodes = (deployed.outputs[name] for name in (FLEET_OUTPUT, VERIFIED_NODES_OUTPUT))
        return Readiness(summary=summary, verified_nodes=int(nodes))

    def set_asleep(self, stack: str, *, asleep: bool) -> None:
        """Start a stack update that changes only the parameter `Asleep`, unless it already has this value.

        Raises RequestRefusedError.
        """
        function = next((record.sleep_function for record in self.stack_records(stack) if record.sleep_function), None)
        if function is None:
            raise RequestRefusedError(f"the record of {stack} names no function that changes {ASLEEP_PARAMETER}")
        with write_errors("lambda:InvokeFunction"):
            answer = self.client("lambda").invoke(FunctionName=function, Payload=json.dumps({"asleep": asleep}))
            if "FunctionError" in answer:
                failure = json.loads(answer["Payload"].read())
                raise RequestRefusedError(str(failure.get("errorMessage", failure)))
