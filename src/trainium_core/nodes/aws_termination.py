"""Terminates a node, as a loss of its machine would."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from trainium_runtime.aws_errors import write_errors
from trainium_runtime.aws_service import AwsService


class AwsNodeTermination(AwsService):
    """Terminates instances of a cluster. Its Auto Scaling group replaces them."""

    def terminate(self, instance_id: str) -> datetime:
        """When EC2 accepted it, by the clock of AWS, as nodes have it. Raises RequestRefusedError."""
        with write_errors("ec2:TerminateInstances"):
            answer = self.client("ec2").terminate_instances(InstanceIds=[instance_id])
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        return parsedate_to_datetime(date) if date else datetime.now(UTC)
