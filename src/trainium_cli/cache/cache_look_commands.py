"""`trn cache status` and `trn cache list`: the content of a compile cache, and its hit rate."""

from dataclasses import asdict
from decimal import Decimal

import click

from trainium_cli.cache.cache_options import CacheOptions, FoundCache, cache_options, find_cache, read_contents
from trainium_cli.cache.cache_report import entries_and_size, entries_table, entry_as_json, releases_table
from trainium_cli.cluster_choice import cluster_stack_name
from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation
from trainium_cli.terminal import console, echo, pairs, print_json, say
from trainium_cli.waiting import waiting
from trainium_core.aws.prices import AwsPrices
from trainium_core.compile_cache.contents import releases
from trainium_core.costs.estimate import dollars
from trainium_core.engines.ec2.engine import EC2
from trainium_core.jobs.cache_hits import CacheHits, cache_hits
from trainium_core.jobs.engine import NoStackError
from trainium_core.plan import Plan
from trainium_core.plurals import count
from trainium_core.prices.price import PricedItem, PriceTable
from trainium_core.prices.quotes import quotes
from trainium_runtime.errors import UnavailableError

_GIB = 1024**3


@click.command()
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Compute the hit rate of the last N jobs.",
)
@cache_options
def status(options: CacheOptions, jobs: int) -> ExitCode:
    """Show the size, monthly cost and compiler releases of a cache, and the hit rate of the last jobs.

    Exit code 0: shown, possibly without a price. 1: no cache. 3: the cache or the hit rate could not be read.
    """
    found = find_cache(options)
    held = read_contents(found.cache)
    stored = sum(entry.size for entry in held.entries) + sum(each.size for each in held.others)
    with waiting("Asking AWS for prices ..."):
        month = _month_usd(found, stored)
    hits, unknown = _hits(options.invocation, found.plan, jobs) if found.plan and jobs else (None, "")
    if options.invocation.as_json:
        print_json(
            {
                "url": found.location.url,
                "entries": len(held.entries),
                "other_objects": len(held.others),
                "bytes": stored,
                "month_usd": None if month is None else f"{month:.6f}",
                "releases": [{**asdict(use), "newest": use.newest.isoformat()} for use in releases(held.entries)],
                "jobs": None if hits is None else {**asdict(hits), "rate": hits.rate},
                "jobs_unknown": unknown or None,
                "requests": found.limit.sent,
            }
        )
    else:
        others = f", and {count(len(held.others), 'other object')}" if held.others else ""
        rows = [
            ("cache", found.location.url),
            ("holds", f"{entries_and_size(held.entries)}{others}"),
            ("cost", "price unknown" if month is None else f"{dollars(month)} a month"),
            ("hit rate", _rate(hits)),
        ]
        console().print(pairs([row for row in rows if row[1]], label_width=8))
        if held.entries:
            console().print()
            console().print(releases_table(releases(held.entries)))
    if unknown:
        echo(f"The hit rate of jobs could not be read: {unknown}", err=True)
        return ExitCode.UNKNOWN
    return ExitCode.OK


@click.command("list")
@click.option(
    "--release",
    "of_releases",
    multiple=True,
    metavar="RELEASE",
    help="Only entries of this compiler release. Repeatable.",
)
@cache_options
def list_entries(options: CacheOptions, of_releases: tuple[str, ...]) -> None:
    """List the entries of a cache: those packed by nodes, and those written by PyTorch/XLA.

    Exit code 0: listed. 1: no cache. 3: unknown.
    """
    found = find_cache(options)
    held = read_contents(found.cache)
    entries = [entry for entry in held.entries if not of_releases or entry.release in of_releases]
    if options.invocation.as_json:
        print_json([entry_as_json(entry) for entry in entries])
    elif entries:
        console().print(entries_table(entries))
        say(entries_and_size(entries))
    else:
        say(f"{found.location.url} has no entries{' of these releases' if of_releases else ''}.")


def _month_usd(found: FoundCache, stored: int) -> Decimal | None:
    region = found.cache.region
    item = PricedItem(product="s3-storage", region=region)
    own: PriceTable = found.plan.prices if found.plan else {}
    price = quotes([item], own=own, aws=AwsPrices(region)).prices.get(item)
    return None if price is None or price.usd is None else stored * price.usd / _GIB


def _hits(invocation: Invocation, plan: Plan, most: int) -> tuple[CacheHits | None, str]:
    """The hit rate of the cluster's last jobs, or why it is unknown; neither if the cluster has no stack."""
    try:
        with waiting("Asking S3 for the last jobs ..."):
            stack = cluster_stack_name(invocation, plan, None)
            return cache_hits(EC2.jobs(plan, stack, invocation.clients).newest(most)), ""
    except NoStackError:
        return None, ""
    except UnavailableError as error:
        return None, str(error)


def _rate(hits: CacheHits | None) -> str:
    if hits is None or hits.rate is None:
        return ""
    jobs = "the last job" if hits.jobs == 1 else f"the last {hits.jobs} jobs"
    return f"{hits.rate:.0%} in {jobs}: {hits.hits:,} hits, {hits.misses:,} misses"
