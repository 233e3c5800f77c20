"""Puts a deployed cluster to sleep and wakes it: an update of its stack, by the template that it has."""

from collections.abc import Mapping
from typing import Any

from trainium_core.naming import ASLEEP_PARAMETER, FLEET_OUTPUT
from trainium_core.nodes.aws_groups import AwsNodeGroupControl
from trainium_core.nodes.aws_notices import AwsNodeNotices
from trainium_core.sleep.account import SleepState
from trainium_core.stacks.aws_control import AwsStackControl
from trainium_core.stacks.aws_events import AwsStackEvents
from trainium_core.teardown.scope import GROUP
from trainium_runtime.aws_errors import read_errors, write_errors

_CAPABILITIES = ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND")


class AwsSleepControl(AwsStackControl, AwsStackEvents, AwsNodeNotices, AwsNodeGroupControl):
    """Answers trainium_core.sleep.account.SleepAccount."""

    def sleep_state(self, stack: str) -> SleepState | None:
        for look in self.living_stacks([stack]):
            given = self._parameters(stack).get(ASLEEP_PARAMETER)
            asleep = None if given is None else given == "true"
            return SleepState(
                status=look.status,
                asleep=asleep,
                cluster=look.cluster,
                created=self._stack(stack)["CreationTime"],
                groups=look.ids(GROUP),
            )
        return None

    def fleet(self, stack: str) -> str | None:
        return (self.stack_outputs(stack) or {}).get(FLEET_OUTPUT)

    def set_asleep(self, stack: str, *, asleep: bool) -> None:
        others = [name for name in self._parameters(stack) if name != ASLEEP_PARAMETER]
        new = {"ParameterKey": ASLEEP_PARAMETER, "ParameterValue": "true" if asleep else "false"}
        with write_errors("cloudformation:UpdateStack"):
            self.client("cloudformation").update_stack(
                StackName=stack,
                UsePreviousTemplate=True,
                Parameters=[new, *({"ParameterKey": name, "UsePreviousValue": True} for name in others)],
                Capabilities=list(_CAPABILITIES),
            )

    def _parameters(self, stack: str) -> dict[str, str]:
        return {one["ParameterKey"]: one.get("ParameterValue", "") for one in self._stack(stack).get("Parameters", [])}

    def _stack(self, stack: str) -> Mapping[str, Any]:
        with read_errors("cloudformation:DescribeStacks"):
            (found,) = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
            return found
