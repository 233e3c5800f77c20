"""Asks CloudFormation for the stacks of a pilot."""

from collections.abc import Iterator, Mapping, Sequence

from trainium_core.images.aws_images import AwsImages
from trainium_core.stacks.pilot_stacks import DeployedStack
from trainium_runtime.aws_errors import read_errors


class AwsPilotStacks(AwsImages):
    """Answers trainium_core.stacks.pilot_stacks.PilotStacks."""

    def deployed_stacks(self, names: Sequence[str]) -> Mapping[str, DeployedStack]:
        return dict(self._standing(names))

    def _standing(self, names: Sequence[str]) -> Iterator[tuple[str, DeployedStack]]:
        for name in names:
            with read_errors("cloudformation:DescribeStacks", absent=("does not exist",)):
                (found,) = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
                resolved = {
                    one["ParameterValue"]: one["ResolvedValue"]
                    for one in found.get("Parameters", [])
                    if "ResolvedValue" in one
                }
                yield name, DeployedStack(created=found["CreationTime"], resolved=resolved)
