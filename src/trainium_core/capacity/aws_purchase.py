"""Buys a Capacity Block. Only `trn capacity buy` uses this module."""

from dataclasses import dataclass
from typing import Any, cast

import boto3.session
from botocore.config import Config
from botocore.exceptions import ClientError

from trainium_core.capacity.offerings import INSTANCE_PLATFORM
from trainium_runtime.aws_errors import UNREACHED, WITHOUT_CREDENTIALS, write_errors
from trainium_runtime.errors import RequestRefusedError

ONCE = Config(connect_timeout=5, read_timeout=60, retries={"total_max_attempts": 1})
"""The purchase API has no idempotency token, so the request is never retried."""


class SaleUnknownError(Exception):
    """AWS gave no valid answer to the request, or a server error. The block may have been bought."""


@dataclass(frozen=True, kw_only=True)
class PurchasedBlock:
    """A purchased Capacity Block: the reservation to launch into, and its state."""

    reservation_id: str
    state: str


class AwsCapacityPurchase:
    """Buys in one region with boto3's default credentials.

    Args:
        region: The region.
        client: An EC2 client without retries, for tests.
    """

    def __init__(self, region: str, *, client: Any = None) -> None:
        session: Any = boto3.session.Session()
        self._client: Any = client or session.client("ec2", region_name=region, config=ONCE)

    def buy(self, offering_id: str) -> PurchasedBlock:
        """Buy a Capacity Block.

        Args:
            offering_id: ID of the offering.

        Returns:
            The purchased block.

        Raises:
            RequestRefusedError: AWS refused the purchase, or no request was sent.
            SaleUnknownError: The block may have been bought.
        """
        try:
            with write_errors("ec2:PurchaseCapacityBlock"):
                answer = self._client.purchase_capacity_block(
                    CapacityBlockOfferingId=offering_id, InstancePlatform=INSTANCE_PLATFORM
                )
        except RequestRefusedError as error:
            if _may_have_been_sold(error.__cause__):
                raise SaleUnknownError(str(error)) from error
            raise
        bought = answer["CapacityReservation"]
        return PurchasedBlock(reservation_id=bought["CapacityReservationId"], state=bought["State"])


def _may_have_been_sold(cause: BaseException | None) -> bool:
    if isinstance(cause, (*WITHOUT_CREDENTIALS, *UNREACHED)):  # no request was sent
        return False
    if not isinstance(cause, ClientError):
        return True
    return cast(Any, cause).response["ResponseMetadata"]["HTTPStatusCode"] >= 500
