"""Terminates a node, to simulate the loss of its machine."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from trainium_runtime.aws_errors import write_errors
from trainium_runtime.aws_service import AwsService


class AwsNodeTermination(AwsService):
    """Terminates instances of a cluster. Its Auto Scaling group replaces them."""

    def terminate(self, instance_id: str) -> datetime:
        """Terminate an instance.

        Returns:
            When EC2 accepted the request, by AWS's clock, with which nodes synchronise theirs; by the local clock if
            the response has no date.

        Raises:
            RequestRefusedError: EC2 refused the request.
        """
        with write_errors("ec2:TerminateInstances"):
            answer = self.client("ec2").terminate_instances(InstanceIds=[instance_id])
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        return parsedate_to_datetime(date) if date else datetime.now(UTC)
