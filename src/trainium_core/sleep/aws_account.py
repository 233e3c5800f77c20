"""Puts a cluster to sleep and wakes it with the function that updates its stack."""

import json

from trainium_core.naming import ASLEEP_PARAMETER, FLEET_OUTPUT, SET_ASLEEP_FUNCTION, VERIFIED_NODES_OUTPUT
from trainium_core.nodes.aws_control import AwsNodeControl
from trainium_core.sleep.state import Readiness, SleepState
from trainium_core.stacks.aws_control import AwsStackControl
from trainium_core.stacks.aws_events import AwsStackEvents
from trainium_core.teardown.scope import GROUP
from trainium_runtime.aws_errors import write_errors
from trainium_runtime.errors import RequestRefusedError


class AwsSleepControl(AwsStackControl, AwsStackEvents, AwsNodeControl):
    """The requests of `trn sleep` and `trn wake`."""

    def sleep_state(self, stack: str) -> SleepState | None:
        """The state of a stack; None if the stack does not exist. Raises UnavailableError."""
        deployed = self.deployed_stack(stack)
        described = self.existing_stacks([stack]) if deployed else ()
        if deployed is None or not described:
            return None
        asleep = deployed.parameters.get(ASLEEP_PARAMETER)
        return SleepState(
            status=deployed.status,
            asleep=None if asleep is None else asleep == "true",
            cluster=described[0].cluster,
            created=deployed.created,
            groups=tuple(described[0].ids(GROUP)),
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
        with write_errors("cloudformation:DescribeStackResources"):
            answer = self.client("cloudformation").describe_stack_resources(
                StackName=stack, LogicalResourceId=SET_ASLEEP_FUNCTION
            )
        functions = [resource["PhysicalResourceId"] for resource in answer["StackResources"]]
        if not functions:
            raise RequestRefusedError(f"{stack} has no function {SET_ASLEEP_FUNCTION}: run `trn deploy` once")
        with write_errors("lambda:InvokeFunction"):
            answer = self.client("lambda").invoke(FunctionName=functions[0], Payload=json.dumps({"asleep": asleep}))
            if "FunctionError" in answer:
                failure = json.loads(answer["Payload"].read())
                raise RequestRefusedError(str(failure.get("errorMessage", failure)))
