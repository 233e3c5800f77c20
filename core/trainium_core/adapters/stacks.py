"""Asks CloudFormation."""

from trainium_core.adapters.aws_service import AwsService, asking


class AwsStacks(AwsService):
    def stack_status(self, name: str) -> str | None:
        # CloudFormation has no code of its own for a stack that does not exist.
        with asking("cloudformation:DescribeStacks", absent=("does not exist",)):
            return self.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]
        return None
