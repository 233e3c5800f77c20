"""Reads the Capacity Block of a pilot from EC2."""

from typing import Any

from trainium_runtime.pilot_clock import CapacityBlock


def read_capacity_block(ec2: Any, block_id: str) -> CapacityBlock | None:
    """EC2's description of a Capacity Block. None if EC2 does not have it.

    Raises:
        ClientError: EC2 refused the request.
        BotoCoreError: EC2 was not reached.
    """
    from botocore.exceptions import ClientError

    try:
        answer = ec2.describe_capacity_reservations(CapacityReservationIds=[block_id])
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidCapacityReservationId.NotFound":
            raise
        return None
    reservations = answer["CapacityReservations"]
    if not reservations:
        return None
    return CapacityBlock(
        block_id=block_id,
        instance_type=reservations[0]["InstanceType"],
        begins=reservations[0]["StartDate"],
        ends=reservations[0]["EndDate"],
        state=reservations[0]["State"],
    )
