"""`trn cache copy`: entries to another bucket or region, or under another release."""

from dataclasses import asdict

import click

from trainium_cli.cache.cache_options import (
    CacheOptions,
    cache_options,
    find_cache,
    given_location,
    read_contents,
    refuse_unknown_releases,
    region_of,
)
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.job_cluster import end
from trainium_cli.mistakes import mistake
from trainium_cli.progress_reporter import ProgressReporter
from trainium_cli.quantities import size
from trainium_cli.terminal import print_json, say
from trainium_core.compile_cache.aws_cache import AwsCompileCache, RequestLimitError
from trainium_core.compile_cache.maintenance import copy, copying
from trainium_core.compile_cache.place import RELEASE_PREFIX, is_release
from trainium_runtime.errors import RequestRefusedError, UnavailableError


@click.command("copy")
@click.argument("target", metavar="BUCKET")
@cache_options
@click.option("--release", "of_releases", multiple=True, metavar="RELEASE", help="Only of this release. Repeatable.")
@click.option("--as-release", metavar="RELEASE", help="File them under this release. Default: their own.")
@click.option("--yes", is_flag=True, help="Copy without asking first, for scripts.")
def copy_command(
    target: str,
    options: CacheOptions,
    as_json: bool,
    of_releases: tuple[str, ...],
    as_release: str | None,
    yes: bool,
) -> None:
    """Copy a cache to BUCKET, or s3://BUCKET/FOLDER, of any region.

    S3 copies by itself: one request for each object, and nothing passes through this machine. What is there already
    stays as it is. --as-release is for a release that is known to run what another one compiled; PyTorch/XLA's own
    names hold the release, so that its entries cannot be filed under another.

    Exit code 0: all is there. 1: not copied. 3: could not tell.
    """
    if as_json and not yes:
        raise click.UsageError("with --json nobody is asked: give --yes as well")
    if as_release is not None and not is_release(as_release):
        raise mistake(
            "--as-release", as_release, allowed=f"{RELEASE_PREFIX}VERSION", fix="`trn cache status` shows the releases"
        )
    found = find_cache(options, as_json=as_json)
    location = given_location("BUCKET", target)
    if location == found.location and as_release is None:
        raise click.UsageError(f"{location.url} is the cache itself: name another bucket or folder")
    try:
        region = region_of(location, found.cache.region, found.clients, as_json=as_json)
    except UnavailableError as error:
        end(ExitCode.COULD_NOT_TELL, f"Could not tell: {error}", as_json=as_json)
    to = AwsCompileCache(region, location, found.limit, clients=found.clients)
    held = read_contents(found.cache, as_json=as_json)
    refuse_unknown_releases(found, held, of_releases, as_json=as_json)
    chosen = copying(
        [entry for entry in held.entries if not of_releases or entry.release in of_releases],
        read_contents(to, as_json=as_json).entries,
        as_release=as_release,
    )
    if not as_json:
        parts = [
            f"{chosen.entries:,} entries, {size(chosen.size)}, from {found.location.url} to {location.url} in {region}",
            f"{chosen.there:,} there already" if chosen.there else "",
            f"{chosen.left_out:,} left out: not finished, or of a name that holds another release"
            if chosen.left_out
            else "",
        ]
        say("; ".join(part for part in parts if part))
    if chosen.keys and not yes and not click.confirm("\nCopy this?"):
        say("Nothing was copied.")
        raise click.exceptions.Exit(ExitCode.NOT_READY)
    try:
        with ProgressReporter() as reporter:
            copy(
                found.cache,
                to,
                chosen,
                on_progress=lambda done, of: reporter.report("copy", f"{done:,} of {of:,} objects"),
            )
    except (RequestRefusedError, RequestLimitError) as error:
        message = f"Not everything was copied: {error}. Run it again: it goes on."
        end(ExitCode.NOT_READY, message, as_json=as_json)
    if as_json:
        done = {name: value for name, value in asdict(chosen).items() if name != "keys"}
        print_json({"url": found.location.url, "target": location.url, **done, "requests": found.limit.sent})
    elif chosen.keys:
        say(f"Copied {chosen.entries:,} entries.")
