"""Puts a deployed cluster to sleep and wakes it: an update of its stack, by the template that it has."""

from trainium_core.naming import ASLEEP_PARAMETER, FLEET_OUTPUT, is_of_nodes
from trainium_core.nodes.aws_groups import AwsNodeGroupControl
from trainium_core.nodes.aws_notices import AwsNodeNotices
from trainium_core.sleep.account import SleepState
from trainium_core.stacks.aws_control import AwsStackControl
from trainium_core.stacks.aws_events import AwsStackEvents
from trainium_core.teardown.scope import GROUP
from trainium_runtime.aws_errors import write_errors
from trainium_runtime.errors import RequestRefusedError

_CAPABILITIES = ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND")


class AwsSleepControl(AwsStackControl, AwsStackEvents, AwsNodeNotices, AwsNodeGroupControl):
    """Implements trainium_core.sleep.account.SleepAccount."""

    def sleep_state(self, stack: str) -> SleepState | None:
        deployed = self.deployed_stack(stack)
        described = self.existing_stacks([stack]) if deployed else ()
        if deployed is None or not described:
            return None
        asleep = deployed.parameters.get(ASLEEP_PARAMETER)
        groups = described[0].ids(GROUP)
        return SleepState(
            status=deployed.status,
            asleep=None if asleep is None else asleep == "true",
            cluster=described[0].cluster,
            created=deployed.created,
            groups=tuple(name for name in groups if is_of_nodes(name)),
            hosts=tuple(name for name in groups if not is_of_nodes(name)),
        )

    def fleet(self, stack: str) -> str | None:
        deployed = self.deployed_stack(stack)
        return deployed.outputs.get(FLEET_OUTPUT) if deployed else None

    def set_asleep(self, stack: str, *, asleep: bool) -> None:
        deployed = self.deployed_stack(stack)
        if deployed is None:
            raise RequestRefusedError(f"there is no stack {stack}")
        others = [name for name in deployed.parameters if name != ASLEEP_PARAMETER]
        new = {"ParameterKey": ASLEEP_PARAMETER, "ParameterValue": "true" if asleep else "false"}
        with write_errors("cloudformation:UpdateStack"):
            self.client("cloudformation").update_stack(
                StackName=stack,
                UsePreviousTemplate=True,
                Parameters=[new, *({"ParameterKey": name, "UsePreviousValue": True} for name in others)],
                Capabilities=list(_CAPABILITIES),
            )
