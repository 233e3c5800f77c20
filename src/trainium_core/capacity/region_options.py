"""Turns the responses of one region into ways to get a plan's nodes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from trainium_core.aws.capacity import INSTANCE_PLATFORM, BlockOffering, Reservation
from trainium_core.capacity.option import CapacityOption
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plurals import count
from trainium_core.prices.price import CAPACITY_BLOCK, ON_DEMAND, SPOT, Price, PricedItem
from trainium_runtime.errors import UnavailableError
from trainium_runtime.pilot_clock import stops_before_block_end


@dataclass(frozen=True, kw_only=True)
class CapacityRequest:
    """A search for the nodes of a plan.

    Attributes:
        plan: The plan.
        hours: How long the nodes are needed.
        now: The current time.
        start_by: The latest start, if any.
        block: Reservation ID of the plan's Capacity Block, for a search for extensions; None: no such search.
    """

    plan: Plan
    hours: int
    now: datetime
    start_by: datetime | None = None
    block: str | None = None


@dataclass(frozen=True, kw_only=True)
class RegionAnswers:
    """The responses of one region. Zones, reservations, blocks and scores are an error if the request failed.

    Attributes:
        zones: IDs of the zones that offer the type.
        reservations: The active and scheduled reservations of the type.
        blocks: The blocks for sale; empty if there are none, or if they were not requested.
        sells_blocks: Whether AWS sells blocks of the type.
        scores: Spot placement scores by zone ID; empty if the type is not sold as spot.
        prices: The prices that could be found.
    """

    region: str
    zones: Collection[str] | UnavailableError
    reservations: Sequence[Reservation] | UnavailableError
    blocks: Sequence[BlockOffering] | UnavailableError = ()
    sells_blocks: bool = True
    scores: Mapping[str, int] | UnavailableError
    prices: Mapping[PricedItem, Price]


def capacity_options(request: CapacityRequest, answers: RegionAnswers) -> Iterator[CapacityOption]:
    """All ways to get the nodes in one region, including those whose request failed."""
    yield from _reserved(request, answers)
    for capacity, ways in ((ON_DEMAND, _on_demand), (SPOT, _spot), (CAPACITY_BLOCK, _blocks)):
        if capacity in request.plan.type.usage_classes:
            yield from ways(request, answers)


def usable_until(reservation: Reservation) -> datetime | None:
    """The time until which nodes can use a reservation; None if it has no end.

    Nodes in a Capacity Block are terminated before the end of the block. After the end of any other reservation,
    its instances keep running on demand.
    """
    if reservation.end is None or reservation.capacity != CAPACITY_BLOCK:
        return reservation.end
    return reservation.end - stops_before_block_end(reservation.instance_type)


def _reserved(request: CapacityRequest, answers: RegionAnswers) -> Iterator[CapacityOption]:
    if isinstance(answers.reservations, UnavailableError):
        yield _unknown("reservation", answers, answers.reservations)
        return
    for reservation in answers.reservations:
        yield _reservation_option(request, answers.region, reservation)


def _reservation_option(request: CapacityRequest, region: str, reservation: Reservation) -> CapacityOption:
    start = reservation.start if reservation.start and reservation.start > request.now else None
    last, remaining = usable_until(reservation), f"{reservation.launchable} of {reservation.total} instances are left"
    prospect, note = "later" if start else "now", remaining
    if start and not reservation.total:
        prospect, note = "unknown", "its size is known only after it starts"
    elif reservation.launchable < request.plan.nodes:
        prospect, note = "no", f"{remaining}; {request.plan.nodes} are needed"
    elif reservation.platform != INSTANCE_PLATFORM:
        prospect, note = "no", f"for {reservation.platform}"
    elif last is not None and last <= request.now:
        prospect, note = "no", "its instances are being terminated"
    return CapacityOption(
        capacity=reservation.capacity,
        region=region,
        zone_id=reservation.zone_id,
        prospect=prospect,
        start=start,
        end=last,
        hours=_hours(last - (start or request.now)) if last else None,
        paid_for=True,
        reservation_id=reservation.reservation_id,
        note=note,
    )


def _on_demand(request: CapacityRequest, answers: RegionAnswers) -> Iterator[CapacityOption]:
    if isinstance(answers.zones, UnavailableError):
        yield _unknown(ON_DEMAND, answers, answers.zones)
        return
    price = answers.prices.get(_item(ON_DEMAND, request, answers.region))
    unlisted = price is not None and price.usd is None
    for zone_id in sorted(answers.zones):
        option = CapacityOption(
            capacity=ON_DEMAND,
            region=answers.region,
            zone_id=zone_id,
            prospect="unlikely" if unlisted else "now",
            note="no price listed" if unlisted else "",
        )
        yield _priced(option, price, request)
    yield from _not_offered(ON_DEMAND, answers)


def _spot(request: CapacityRequest, answers: RegionAnswers) -> Iterator[CapacityOption]:
    if isinstance(answers.zones, UnavailableError) or isinstance(answers.scores, UnavailableError):
        unavailable = answers.zones if isinstance(answers.zones, UnavailableError) else answers.scores
        yield _unknown(SPOT, answers, unavailable)
        return
    for zone_id in sorted(answers.zones):
        score = answers.scores.get(zone_id)
        unlikely = score is not None and score <= facts()["spot_placement_scores"]["lowest"]
        option = CapacityOption(
            capacity=SPOT,
            region=answers.region,
            zone_id=zone_id,
            prospect="unknown" if score is None else "unlikely" if unlikely else "now",
            score=score,
            note="AWS gave no spot placement score" if score is None else "lowest score" if unlikely else "",
        )
        yield _priced(option, answers.prices.get(_item(SPOT, request, answers.region, zone_id)), request)
    yield from _not_offered(SPOT, answers)


def _blocks(request: CapacityRequest, answers: RegionAnswers) -> Iterator[CapacityOption]:
    if isinstance(answers.blocks, UnavailableError):
        yield _unknown(CAPACITY_BLOCK, answers, answers.blocks)
        return
    for block in answers.blocks:
        in_dollars = block.currency == "USD"
        yield CapacityOption(
            capacity=CAPACITY_BLOCK,
            region=answers.region,
            zone_id=block.zone_id,
            prospect="later" if block.start > request.now else "now",
            start=block.start if block.start > request.now else None,
            end=block.end,
            hours=block.hours,
            hourly=block.upfront_fee / block.instances / block.hours if in_dollars else None,
            total=block.upfront_fee if in_dollars else None,
            offering_id=block.offering_id,
            note="" if in_dollars else f"{block.upfront_fee} {block.currency}",
        )
    if not answers.blocks:
        nodes, largest = request.plan.nodes, facts()["capacity_blocks"]["instances_per_block"]
        by = f" that starts by {request.start_by:%Y-%m-%d}" if request.start_by else ""
        reason = f"no block for {count(nodes, 'node')} and {request.hours} h{by} is for sale"
        if not answers.sells_blocks:
            reason = "AWS sells no blocks of this type here"
            if request.plan.type.instances_per_ultraserver > 1:
                reason += ", except as whole UltraServers to accounts that AWS Support has enabled"
        elif nodes > largest:
            reason = f"a block holds up to {largest} instances; {nodes} are needed"
        yield CapacityOption(capacity=CAPACITY_BLOCK, region=answers.region, prospect="no", note=reason)


def _not_offered(capacity: str, answers: RegionAnswers) -> Iterator[CapacityOption]:
    if not answers.zones:
        note = "no zone offers the type to this account"
        yield CapacityOption(capacity=capacity, region=answers.region, prospect="no", note=note)


def _unknown(capacity: str, answers: RegionAnswers, unavailable: object) -> CapacityOption:
    return CapacityOption(capacity=capacity, region=answers.region, prospect="unknown", note=str(unavailable))


def priced_items(request: CapacityRequest, region: str, zones: Collection[str]) -> tuple[PricedItem, ...]:
    """The prices to look up in a region: on demand, and spot in each zone."""
    return (_item(ON_DEMAND, request, region), *(_item(SPOT, request, region, zone_id) for zone_id in sorted(zones)))


def _item(product: str, request: CapacityRequest, region: str, zone_id: str = "") -> PricedItem:
    return PricedItem(product=product, region=region, instance_type=request.plan.instance_type, zone_id=zone_id)


def _priced(option: CapacityOption, price: Price | None, request: CapacityRequest) -> CapacityOption:
    hours = Decimal(request.hours)
    if price is None or price.usd is None:
        return replace(option, hours=hours)
    return replace(option, hours=hours, hourly=price.usd, total=price.usd * request.plan.nodes * hours)


def _hours(length: timedelta) -> Decimal:
    return Decimal(max(length, timedelta()) / timedelta(hours=1))
