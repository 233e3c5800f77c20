"""Capacity that is reserved, sold in blocks, or likely available on the spot market, from EC2."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, cast

from botocore.exceptions import ClientError

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import UnavailableError
from trainium_runtime.naming import CLUSTER_TAG
from trainium_runtime.tags import tag_values

INSTANCE_PLATFORM = "Linux/UNIX"
"""EC2's platform name of Ubuntu and Amazon Linux images."""

_RUNNING = ("pending", "running")
_USABLE = ("active", "scheduled")
# EC2 documentation, view Capacity Blocks: the capacity is zero before the start; this tag has the final value.
_SIZE_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"
_NOT_SOLD = "not supported for Capacity Blocks"

_MESSAGES = {
    "CapacityBlockDescribeLimitExceeded": "AWS refused the search for Capacity Blocks in this region: either this "
    "account sent too many searches (try again in a few minutes), or its quota for Capacity Blocks of the type is 0 "
    "(ask AWS Support)",
    "authorized to call DescribeCapacityBlockOfferings API when requesting an EC2 UltraServer": "AWS sells this type "
    "in UltraServers, and this account may not search for them: ask AWS Support",
    "PendingVerification": "AWS is still verifying this account, and does not sell it capacity yet",
    "MaxConfigLimitExceeded": "this account has requested spot placement scores for too many types, numbers of "
    "instances or regions within 24 hours: try again later",
}
"""Messages for AWS's errors, by a part of their code or message."""


@dataclass(frozen=True, kw_only=True)
class BlockOffering:
    """A Capacity Block that AWS currently sells.

    Its duration may differ from the requested one, because every block ends at the same time of day.

    Attributes:
        instances: Number of instances.
        upfront_fee: Price of all instances for the whole duration, in `currency`.
    """

    offering_id: str
    instance_type: str
    instances: int
    zone_id: str
    start: datetime
    end: datetime
    upfront_fee: Decimal
    currency: str

    @property
    def hours(self) -> Decimal:
        return Decimal((self.end - self.start) / timedelta(hours=1))


@dataclass(frozen=True, kw_only=True)
class ExtensionOffering:
    """An extension of a Capacity Block that AWS currently sells.

    Attributes:
        start: Start of the extension, which is the current end of the block.
        end: The new end of the block.
        upfront_fee: Price of all instances for the whole extension, in `currency`.
    """

    offering_id: str
    start: datetime
    end: datetime
    upfront_fee: Decimal
    currency: str


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A purchased Capacity Block, or an On-Demand Capacity Reservation.

    Attributes:
        capacity: The purchase option, as in a plan.
        state: EC2's state, such as active.
        platform: EC2's platform, such as Linux/UNIX.
        total: Number of instances.
        available: Number of instances that can be launched now.
        start: Start; None if EC2 returns none.
        end: End; None if it has none.
        placement_group: Name of the placement group in which it was created, if any.
    """

    reservation_id: str
    capacity: Literal["capacity-block", "reservation"]
    state: str
    instance_type: str
    platform: str
    tenancy: str
    zone_id: str
    total: int
    available: int
    start: datetime | None = None
    end: datetime | None = None
    placement_group: str | None = None

    @property
    def launchable(self) -> int:
        """Number of instances that can be launched, for a scheduled reservation once it is active."""
        return self.total if self.state == "scheduled" else self.available


class AwsCapacity(AwsService):
    """Reads capacity of one region. Methods raise UnavailableError if a request fails or is denied."""

    def block_offerings(
        self, *, instance_type: str, instances: int, hours: int, latest_end: datetime | None = None
    ) -> Sequence[BlockOffering] | None:
        """Capacity Blocks for sale; None if AWS sells none of the type.

        Args:
            instance_type: The instance type.
            instances: Number of instances in a block.
            hours: Duration of a block, one of block_durations().
            latest_end: Only blocks that end by this time. Default: any.
        """
        arguments: dict[str, Any] = {
            "InstanceType": instance_type,
            "InstanceCount": instances,
            "CapacityDurationHours": hours,
        }
        if latest_end is not None:
            arguments["EndDateRange"] = latest_end
        with read_errors("ec2:DescribeCapacityBlockOfferings", absent=(_NOT_SOLD,)), _translated_errors():
            pages = self.client("ec2").get_paginator("describe_capacity_block_offerings").paginate(**arguments)
            offered = [entry for page in pages for entry in page["CapacityBlockOfferings"]]
            zone_ids = self._zone_ids() if offered else dict[str, str]()
            return [_offering(entry, zone_ids) for entry in offered]
        return None

    def extension_offerings(self, reservation_id: str, *, hours: int) -> Sequence[ExtensionOffering]:
        """Extensions for sale of a purchased Capacity Block, each `hours` long."""
        with read_errors("ec2:DescribeCapacityBlockExtensionOfferings"):
            pages = self.client("ec2").get_paginator("describe_capacity_block_extension_offerings")
            found = pages.paginate(CapacityReservationId=reservation_id, CapacityBlockExtensionDurationHours=hours)
            return [
                ExtensionOffering(
                    offering_id=entry["CapacityBlockExtensionOfferingId"],
                    start=entry["CapacityBlockExtensionStartDate"],
                    end=entry["CapacityBlockExtensionEndDate"],
                    upfront_fee=Decimal(entry["UpfrontFee"]),
                    currency=entry["CurrencyCode"],
                )
                for page in found
                for entry in page["CapacityBlockExtensionOfferings"]
            ]

    def spot_placement_scores(self, *, instance_type: str, instances: int) -> Mapping[str, int]:
        """The scores, from 1 to 10, by zone ID. EC2 may omit zones of the region."""
        # One region per call: EC2 refuses a whole list if one of its regions is not enabled.
        with read_errors("ec2:GetSpotPlacementScores"), _translated_errors():
            pages = self.client("ec2").get_paginator("get_spot_placement_scores")
            scores = pages.paginate(
                InstanceTypes=[instance_type],
                TargetCapacity=instances,
                SingleAvailabilityZone=True,
                RegionNames=[self.region],
            )
            return {
                entry["AvailabilityZoneId"]: entry["Score"] for page in scores for entry in page["SpotPlacementScores"]
            }

    def reservations(self, instance_type: str) -> Sequence[Reservation]:
        """Active and scheduled reservations of the type, including purchased Capacity Blocks."""
        filters = [
            {"Name": "instance-type", "Values": [instance_type]},
            {"Name": "state", "Values": [*_USABLE]},
        ]
        with read_errors("ec2:DescribeCapacityReservations"):
            pages = self.client("ec2").get_paginator("describe_capacity_reservations")
            return [
                _reservation(entry)
                for page in pages.paginate(Filters=filters)
                for entry in page["CapacityReservations"]
            ]

    def reservation(self, reservation_id: str) -> Reservation | None:
        """The reservation with this ID, in any state; None if it does not exist."""
        with read_errors("ec2:DescribeCapacityReservations", absent=("InvalidCapacityReservationId.",)):
            answer = self.client("ec2").describe_capacity_reservations(CapacityReservationIds=[reservation_id])
            for entry in answer["CapacityReservations"]:
                return _reservation(entry)
        return None

    def instances_in_reservation(self, reservation_id: str, *, cluster: str) -> int:
        """Number of the cluster's instances in the reservation that are pending or running."""
        filters = [
            {"Name": f"tag:{CLUSTER_TAG}", "Values": [cluster]},
            {"Name": "instance-state-name", "Values": [*_RUNNING]},
        ]
        with read_errors("ec2:DescribeInstances"):
            pages = self.client("ec2").get_paginator("describe_instances")
            return sum(
                instance.get("CapacityReservationId") == reservation_id
                for page in pages.paginate(Filters=filters)
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
            )

    def _zone_ids(self) -> Mapping[str, str]:
        """Zone IDs by their names in this account: offerings contain only the name."""
        with read_errors("ec2:DescribeAvailabilityZones"):
            zones = self.client("ec2").describe_availability_zones()["AvailabilityZones"]
            return {zone["ZoneName"]: zone["ZoneId"] for zone in zones}


@contextmanager
def _translated_errors() -> Generator[None]:
    """Raises UnavailableError with a message of _MESSAGES for the errors listed there."""
    try:
        yield
    except ClientError as error:
        answer = cast(Any, error).response["Error"]
        for sign, message in _MESSAGES.items():
            if sign in f"{answer['Code']} {answer.get('Message', '')}":
                raise UnavailableError(message) from error
        raise


def _offering(entry: Mapping[str, Any], zone_ids: Mapping[str, str]) -> BlockOffering:
    return BlockOffering(
        offering_id=entry["CapacityBlockOfferingId"],
        instance_type=entry["InstanceType"],
        instances=entry["InstanceCount"],
        zone_id=zone_ids[entry["AvailabilityZone"]],
        start=entry["StartDate"],
        end=entry["EndDate"],
        upfront_fee=Decimal(entry["UpfrontFee"]),
        currency=entry["CurrencyCode"],
    )


def _reservation(entry: Mapping[str, Any]) -> Reservation:
    group = entry.get("PlacementGroupArn")
    tags = tag_values(entry.get("Tags"))
    return Reservation(
        reservation_id=entry["CapacityReservationId"],
        capacity="capacity-block" if entry.get("ReservationType") == "capacity-block" else "reservation",
        state=entry["State"],
        instance_type=entry["InstanceType"],
        platform=entry["InstancePlatform"],
        tenancy=entry.get("Tenancy", "default"),
        zone_id=entry["AvailabilityZoneId"],
        total=max(entry["TotalInstanceCount"], int(tags.get(_SIZE_TAG, 0))),
        available=entry["AvailableInstanceCount"],
        start=entry.get("StartDate"),
        end=entry.get("EndDate"),
        placement_group=group.partition("placement-group/")[2] if group else None,
    )
