"""The start of a Capacity Block, from which the duration of a pilot counts."""

from datetime import datetime

from trainium_core.aws.capacity import AwsCapacity
from trainium_core.plan.pilot_end import read_pilot_end
from trainium_core.prices.price import CAPACITY_BLOCK


def block_start(
    ends: str | None, account: AwsCapacity, *, capacity: str | None, reservation_id: str | None
) -> datetime | None:
    """The start of the Capacity Block from which an end counts.

    Args:
        ends: The setting trn:ends.
        account: Reads the block.
        capacity: The setting trn:capacity.
        reservation_id: The setting trn:reservation_id.

    Returns:
        The start; None without a block, or if the end is no duration.

    Raises:
        UnavailableError: The request failed or was denied.
    """
    if ends is None or capacity != CAPACITY_BLOCK or reservation_id is None or read_pilot_end(ends).after is None:
        return None
    block = account.reservation(reservation_id)
    return block.start if block else None
