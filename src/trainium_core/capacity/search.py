"""Searches several regions in parallel for capacity for a plan's nodes."""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeVar

from trainium_core.aws.account import AwsAccount
from trainium_core.aws.capacity import BlockOffering, ExtensionOffering
from trainium_core.capacity.option import CapacityOption, ranked
from trainium_core.capacity.region_options import CapacityRequest, RegionAnswers, capacity_options, priced_items
from trainium_core.facts import facts
from trainium_core.prices.price import CAPACITY_BLOCK, SPOT, Price
from trainium_core.prices.quotes import Quotes, quotes
from trainium_runtime.errors import NoAccessError, UnavailableError

HOURS_PER_DAY = 24


def block_durations() -> tuple[int, ...]:
    """The durations of Capacity Blocks in hours: whole days at first, then whole weeks."""
    rule = facts()["capacity_blocks"]
    by_day, by_week = rule["longest_in_days_by_day"], rule["longest_in_days_by_week"]
    days = [*range(1, by_day + 1), *range(by_day + 7, by_week + 1, 7)]
    return tuple(day * HOURS_PER_DAY for day in days)


def allowed_durations() -> str:
    """The durations of Capacity Blocks in hours, as text."""
    rule = facts()["capacity_blocks"]
    by_day, by_week = (rule[key] * HOURS_PER_DAY for key in ("longest_in_days_by_day", "longest_in_days_by_week"))
    return f"whole days ({HOURS_PER_DAY}, {2 * HOURS_PER_DAY}, ... {by_day}), then whole weeks up to {by_week}"


def nearest_duration(hours: int) -> int:
    """The shortest block duration of at least `hours`; the longest duration if all are shorter."""
    durations = block_durations()
    return next((duration for duration in durations if duration >= hours), durations[-1])


_Result = TypeVar("_Result")
_Item = TypeVar("_Item", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class CapacitySearch:
    """The ranked options, with their prices and the reasons why AWS's prices are unavailable.

    Attributes:
        extensions: The extensions for sale of the plan's Capacity Block, or the error if they could not be read.
    """

    options: tuple[CapacityOption, ...]
    prices: tuple[Price, ...]
    unavailable: tuple[str, ...]
    extensions: Sequence[ExtensionOffering] | UnavailableError = ()


def search_capacity(
    request: CapacityRequest, regions: Collection[str], account_in: Callable[[str], AwsAccount]
) -> CapacitySearch:
    """Query all regions in parallel. Options whose request failed are unknown, with the reason.

    Args:
        request: What to search for.
        regions: Names of the regions.
        account_in: Returns the account in a region.

    Returns:
        The options of all regions.

    Raises:
        UnavailableError: In every region, either AWS was not reached, the credentials do not work, or all requests
            failed for a reason with a known remedy.
    """

    def query(region: str) -> tuple[RegionAnswers, Quotes]:
        return query_region(request, region, account_in(region))

    def extensions() -> Sequence[ExtensionOffering]:
        if request.block is None:
            return ()
        return account_in(request.plan.region).capacity.extension_offerings(request.block, hours=request.hours)

    with ThreadPoolExecutor(len(regions) + 1) as threads:
        extended = threads.submit(_answer, extensions)
        answered = list(threads.map(query, regions))
    unanswered = [error for answers, _ in answered if (error := _no_answer(answers))]
    if unanswered and len(unanswered) == len(answered):
        raise unanswered[0]
    options = [option for answers, _ in answered for option in capacity_options(request, answers)]
    return CapacitySearch(
        options=ranked(options, start_by=request.start_by),
        prices=_once(price for answers, _ in answered for price in answers.prices.values()),
        unavailable=_once(reason for _, region_quotes in answered for reason in region_quotes.unavailable),
        extensions=extended.result(),
    )


def query_region(request: CapacityRequest, region: str, account: AwsAccount) -> tuple[RegionAnswers, Quotes]:
    """The responses of one region, and its on-demand and spot prices."""
    name, nodes, sold = request.plan.instance_type, request.plan.nodes, request.plan.type.usage_classes
    wants_blocks = CAPACITY_BLOCK in sold and nodes <= facts()["capacity_blocks"]["instances_per_block"]
    with ThreadPoolExecutor() as threads:
        scores = blocks = None
        if SPOT in sold:
            score = partial(account.capacity.spot_placement_scores, instance_type=name, instances=nodes)
            scores = threads.submit(_answer, score)
        if wants_blocks:
            blocks = threads.submit(_answer, partial(_blocks, request, account))
        reservations = threads.submit(_answer, partial(account.capacity.reservations, name))
        zones = _answer(partial(account.network.zones_offering, name))
        region_quotes = _NO_PRICES
        if not isinstance(zones, UnavailableError):
            items = priced_items(request, region, zones)
            region_quotes = quotes(items, own=request.plan.prices, aws=account.prices)
    offered = blocks.result() if blocks else ()
    answers = RegionAnswers(
        region=region,
        zones=zones,
        reservations=reservations.result(),
        blocks=() if offered is None else offered,
        sells_blocks=offered is not None,
        scores=scores.result() if scores else {},
        prices=region_quotes.prices,
    )
    return answers, region_quotes


def _blocks(request: CapacityRequest, account: AwsAccount) -> Sequence[BlockOffering] | None:
    # A block may be up to a day longer than requested.
    latest_end = request.start_by + timedelta(hours=request.hours, days=1) if request.start_by else None
    return account.capacity.block_offerings(
        instance_type=request.plan.instance_type,
        instances=request.plan.nodes,
        hours=request.hours,
        latest_end=latest_end,
    )


_NO_PRICES = Quotes(prices={})


def _no_answer(answers: RegionAnswers) -> UnavailableError | None:
    """The error to raise if it occurs in every region; None if the region has options or unknowns to show."""
    if not isinstance(answers.zones, UnavailableError) or isinstance(answers.zones, NoAccessError):
        return answers.zones if isinstance(answers.zones, NoAccessError) else None
    others = (answers.reservations, answers.blocks, answers.scores)
    has_nothing = all(not other or isinstance(other, UnavailableError) for other in others)
    return answers.zones if answers.zones.remedy and has_nothing else None


def _answer(question: Callable[[], _Result]) -> _Result | UnavailableError:
    try:
        return question()
    except UnavailableError as error:
        return error


def _once(items: Iterable[_Item]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys(items))
