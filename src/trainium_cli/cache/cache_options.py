"""Which compile cache a `trn cache` command is about, and with how many requests."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from trainium_cli.cluster_selection import (
    cluster_options,
    configured_region,
    others_sentence,
    read_cluster_plan,
    stacks_of_cluster,
)
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.job_cluster import end
from trainium_cli.mistakes import mistake
from trainium_cli.plan_options import IRRELEVANT_LATER, plan_options
from trainium_cli.waiting import waiting
from trainium_core.compile_cache.aws_cache import AwsCompileCache, RequestLimit, RequestLimitError
from trainium_core.compile_cache.contents import Contents, contents_of, releases
from trainium_core.compile_cache.location import CacheLocation, cache_location, locations_in
from trainium_core.nodes.aws_fleets import AwsFleets
from trainium_core.plan import Plan
from trainium_core.storage.aws_storage import AwsBuckets
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import UnavailableError

DEFAULT_REQUESTS = 10_000


@dataclass(frozen=True, kw_only=True)
class CacheOptions:
    """What a command was given. location: of --bucket."""

    overrides: tuple[str, ...]
    cdk_json: Path | None
    location: CacheLocation | None
    most_requests: int


@dataclass(frozen=True, kw_only=True)
class FoundCache:
    """plan: of the cluster; None for the cache of a bucket that was named. clients: for more questions."""

    cache: AwsCompileCache
    clients: Clients
    limit: RequestLimit
    plan: Plan | None

    @property
    def location(self) -> CacheLocation:
        return self.cache.location


def cache_options(command: Callable[..., Any]) -> Any:
    """The options of a cluster, --bucket, --most-requests and --json; gives `options` and `as_json`."""

    @plan_options
    @cluster_options
    @click.option(
        "--bucket",
        "location",
        metavar="BUCKET",
        callback=_location,
        help="Bucket, or s3://BUCKET/FOLDER, of the cache. Default: the cache of the cluster.",
    )
    @click.option(
        "--most-requests",
        type=click.IntRange(min=1),
        default=DEFAULT_REQUESTS,
        show_default=True,
        help="Requests to S3 that may be sent: 1 for each 1,000 objects that are listed.",
    )
    @functools.wraps(command)
    def with_options(
        *arguments: Any,
        overrides: tuple[str, ...],
        cdk_json: Path | None,
        location: CacheLocation | None,
        most_requests: int,
        **more: Any,
    ) -> Any:
        options = CacheOptions(overrides=overrides, cdk_json=cdk_json, location=location, most_requests=most_requests)
        return command(*arguments, options=options, **more)

    return with_options


def _location(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> CacheLocation | None:
    if value is None:
        return None
    try:
        return cache_location(value)
    except ValueError:
        allowed = "the name of a bucket, or s3://BUCKET/FOLDER"
        raise mistake("--bucket", value, allowed=allowed, fix="`trn cache status` shows that of a cluster") from None


def find_cache(options: CacheOptions, *, as_json: bool) -> FoundCache:
    """The cache of --bucket, else that of the cluster; ends the command where there is none."""
    limit, clients = RequestLimit(options.most_requests), Clients()

    def found(region: str, location: CacheLocation, plan: Plan | None) -> FoundCache:
        cache = AwsCompileCache(region, location, limit, clients=clients)
        return FoundCache(cache=cache, clients=clients, limit=limit, plan=plan)

    try:
        if options.location:
            region = _region_of(options.location, clients, as_json=as_json)
            return found(region, options.location, None)
        plan = read_cluster_plan(options.cdk_json, options.overrides, as_json=as_json, ignoring=IRRELEVANT_LATER)
        location = _of_cluster(plan, clients, as_json=as_json)
    except UnavailableError as error:
        end(ExitCode.UNKNOWN, f"Could not tell: {error}", as_json=as_json)
    return found(plan.region, location, plan)


def _region_of(location: CacheLocation, clients: Clients, *, as_json: bool) -> str:
    """The region of a bucket; ends the command when there is no such bucket. Raises UnavailableError."""
    region = configured_region()
    with waiting(f"Asking S3 for {location.bucket} ..."):
        found = AwsBuckets(region, clients=clients).bucket_region(location.bucket)
    if found is None:
        end(ExitCode.NOT_READY, f"There is no bucket {location.bucket}.", as_json=as_json)
    return found or region


def read_contents(cache: AwsCompileCache, *, as_json: bool) -> Contents:
    """Everything in a cache; ends the command when S3 does not say, or not within the requests."""
    found: list[Any] = []
    try:
        with waiting(f"Listing {cache.location.url} ...") as change:
            for each in cache.objects():
                found.append(each)
                if len(found) % 1000 == 0:
                    change(f"Listing {cache.location.url}: {len(found):,} objects ...")
    except UnavailableError as error:
        end(ExitCode.UNKNOWN, f"Could not tell: {error}", as_json=as_json)
    except RequestLimitError as error:
        message = f"Could not tell: {error}; {len(found):,} objects were listed. --most-requests allows more."
        end(ExitCode.UNKNOWN, message, as_json=as_json)
    return contents_of(found)


def refuse_unknown_releases(found: FoundCache, held: Contents, chosen: Sequence[str], *, as_json: bool) -> None:
    """End the command for a release that the cache does not have."""
    known = {use.release for use in releases(held.entries)}
    missing = [release for release in chosen if release not in known]
    if missing:
        there = f"it has: {', '.join(sorted(known))}" if known else "it is empty"
        end(ExitCode.BAD_INPUT, f"{found.location.url} has no release {', '.join(missing)}; {there}", as_json=as_json)


def _of_cluster(plan: Plan, clients: Clients, *, as_json: bool) -> CacheLocation:
    if plan.cache.bucket is not None:
        return CacheLocation(bucket=plan.cache.bucket)
    names: Sequence[str] = stacks_of_cluster(plan)
    account = AwsFleets(plan.region, clients=clients)
    with waiting(f"Asking AWS for the cache of {plan.cluster_name} in {plan.region} ..."):
        deployed = [stack for name in names if (stack := account.deployed_stack(name))]
        found = locations_in(stack.outputs for stack in deployed)
        if not found:  # an app of one's own need not say
            found = tuple(CacheLocation(bucket=one) for stack in deployed for one in account.cache_buckets(stack))
    if not deployed:
        message = f"No stack of {plan.cluster_name} is in {plan.region}.{others_sentence(plan)}"
        end(ExitCode.NOT_READY, f"{message} --bucket names a cache that a cluster left.", as_json=as_json)
    if not found:
        message = f"No stack of {plan.cluster_name} says where its compile cache is: --bucket names it."
        end(ExitCode.NOT_READY, message, as_json=as_json)
    location, *others = found
    if others:
        which = f"--bucket says which: {', '.join(one.url for one in found)}"
        end(ExitCode.BAD_INPUT, f"{plan.cluster_name} has {len(found)} caches. {which}", as_json=as_json)
    return location
