"""The options of `trn cache`, the cache that they select, and its contents."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from trainium_cli.cluster_choice import cache_urls, configured_region, others_sentence, read_cluster_plan
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, cluster_options, pass_invocation, plan_options
from trainium_cli.mistakes import mistake
from trainium_cli.waiting import waiting
from trainium_core.aws.storage import AwsStorage
from trainium_core.compile_cache.aws_cache import AwsCompileCache, RequestLimit, RequestLimitError
from trainium_core.compile_cache.contents import Contents, cache_contents
from trainium_core.compile_cache.location import CacheLocation, cache_location
from trainium_core.plan import Plan

DEFAULT_REQUESTS = 10_000


@dataclass(frozen=True, kw_only=True)
class CacheOptions:
    """The options of a command.

    Attributes:
        invocation: The options of the plan and the cluster.
        location: The cache of --bucket; None for the cache of the cluster.
        most_requests: Limit of requests to S3.
    """

    invocation: Invocation
    location: CacheLocation | None
    most_requests: int


@dataclass(frozen=True, kw_only=True)
class FoundCache:
    """A selected cache.

    Attributes:
        cache: The cache in S3.
        limit: The number of requests, and their limit.
        plan: The plan of the cluster; None for the cache of --bucket.
    """

    cache: AwsCompileCache
    limit: RequestLimit
    plan: Plan | None

    @property
    def location(self) -> CacheLocation:
        return self.cache.location


def cache_options(command: Callable[..., Any]) -> Any:
    """--bucket, --most-requests, the options of a cluster and --json, passed to the command as `options`."""

    @click.option(
        "--bucket",
        "location",
        metavar="BUCKET",
        callback=_location,
        help="Bucket, or s3://BUCKET/FOLDER, of the cache. Default: the cache of the cluster.",
    )
    @click.option(
        "--most-requests",
        metavar="NUMBER",
        type=click.IntRange(min=1),
        default=DEFAULT_REQUESTS,
        show_default=True,
        help="Limit of requests to S3. One request lists 1,000 objects.",
    )
    @cluster_options
    @plan_options
    @pass_invocation
    @functools.wraps(command)
    def with_options(invocation: Invocation, location: CacheLocation | None, most_requests: int, **more: Any) -> Any:
        options = CacheOptions(invocation=invocation, location=location, most_requests=most_requests)
        return command(options=options, **more)

    return with_options


def _location(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> CacheLocation | None:
    if value is None:
        return None
    try:
        return cache_location(value)
    except ValueError:
        allowed = "the name of a bucket, or s3://BUCKET/FOLDER"
        raise mistake("--bucket", value, allowed=allowed, fix="`trn cache status` shows a cluster's cache") from None


def find_cache(options: CacheOptions) -> FoundCache:
    """The cache of --bucket, else the cache of the cluster.

    Raises:
        CliError: The cluster is not deployed, or has no cache or several, or the bucket does not exist.
        PlanError: The plan has mistakes.
        UnavailableError: AWS could not be read.
    """
    invocation = options.invocation
    limit = RequestLimit(options.most_requests)
    if options.location:
        region, location, plan = _bucket_region(invocation, options.location), options.location, None
    else:
        plan = read_cluster_plan(invocation)
        region, location = plan.region, _cluster_location(invocation, plan)
    cache = AwsCompileCache(region, location, limit, clients=invocation.clients)
    return FoundCache(cache=cache, limit=limit, plan=plan)


def _bucket_region(invocation: Invocation, location: CacheLocation) -> str:
    """The region of a bucket, or the configured one if S3 does not name it. Raises UnavailableError, and CliError if
    the bucket does not exist."""
    region = configured_region(invocation)
    with waiting(f"Asking S3 for {location.bucket} ..."):
        found = AwsStorage(region, clients=invocation.clients).bucket_region(location.bucket)
    if found is None:
        raise CliError(f"Bucket {location.bucket} does not exist.", ExitCode.NOT_READY)
    return found or region


def read_contents(cache: AwsCompileCache) -> Contents:
    """All objects of a cache. Raises UnavailableError, and CliError if the request limit is too low."""
    found: list[Any] = []
    try:
        with waiting(f"Listing {cache.location.url} ...") as change:
            for each in cache.objects():
                found.append(each)
                if len(found) % 1000 == 0:
                    change(f"Listing {cache.location.url}: {len(found):,} objects ...")
    except RequestLimitError as error:
        message = f"Unknown: {error}; {len(found):,} objects were listed. Pass a higher --most-requests."
        raise CliError(message, ExitCode.UNKNOWN) from error
    return cache_contents(found)


def _cluster_location(invocation: Invocation, plan: Plan) -> CacheLocation:
    if plan.cache.bucket is not None:
        return CacheLocation(bucket=plan.cache.bucket)
    with waiting(f"Asking AWS for the cache of {plan.cluster_name} in {plan.region} ..."):
        found = [cache_location(url) for url in cache_urls(invocation, plan)]
    if not found:
        message = f"No record of {plan.cluster_name} is in {plan.region}.{others_sentence(invocation, plan)}"
        raise CliError(f"{message} --bucket selects a cache without a cluster.", ExitCode.NOT_READY)
    location, *others = found
    if others:
        which = f"Select one with --bucket: {', '.join(one.url for one in found)}"
        raise CliError(f"{plan.cluster_name} has {len(found)} caches. {which}", ExitCode.BAD_INPUT)
    return location
