"""`trn cache clean`: deletes entries by compiler release, age or use."""

from datetime import UTC, datetime, timedelta

import click

from trainium_cli.cache.cache_options import CacheOptions, cache_options, find_cache, read_contents
from trainium_cli.cache.cache_report import entries_and_size, entry_as_json, releases_table
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.progress_reporter import ProgressReporter
from trainium_cli.terminal import console, print_json, say
from trainium_core.compile_cache.aws_cache import RequestLimitError
from trainium_core.compile_cache.contents import releases, to_clean
from trainium_runtime.errors import RequestRefusedError

_UNUSED_DAYS = 60


@click.command("clean")
@click.option(
    "--release", "of_releases", multiple=True, metavar="RELEASE", help="Entries of this compiler release. Repeatable."
)
@click.option(
    "--older-than", type=click.IntRange(min=0), metavar="DAYS", help="Entries written or renewed more than DAYS ago."
)
@click.option(
    "--unused-for",
    type=click.IntRange(min=0),
    metavar="DAYS",
    help="Entries under S3 prefixes in which no entry was written or renewed for DAYS. Default if nothing else selects "
    f"entries: {_UNUSED_DAYS}.",
)
@click.option(
    "--keep-releases",
    type=click.IntRange(min=0),
    metavar="N",
    help="Entries of all compiler releases except the N most recently written. 0: of all releases.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, for scripts.")
@cache_options
def clean_command(
    options: CacheOptions,
    of_releases: tuple[str, ...],
    older_than: int | None,
    keep_releases: int | None,
    unused_for: int | None,
    yes: bool,
) -> ExitCode:
    """Delete entries by compiler release, age or use, after showing them and asking for confirmation.

    If several of --release, --older-than, --keep-releases and --unused-for are passed, entries must match all of them.
    Running jobs keep the entries that they have read; a deleted entry is compiled again when a job needs it. Objects
    that are not entries stay.

    --unused-for looks at S3 prefixes: all entries with the same inputs, such as the compiler release, have one prefix.
    A job that uses a prefix renews its entries once the oldest is older than half the days of the bucket's lifecycle
    rule (45 days without a rule). Entries of PyTorch/XLA are not renewed, so --unused-for does not select them.

    Exit code 0: deleted, or nothing to delete. 1: no cache, not confirmed, or not all deleted. 2: no such RELEASE. 3:
    unknown.
    """
    as_json = options.invocation.as_json
    options.invocation.require_yes(yes)
    found = find_cache(options)
    held = read_contents(found.cache)
    known = {use.release for use in releases(held.entries)}
    missing = [release for release in of_releases if release not in known]
    if missing:
        there = f"it has: {', '.join(sorted(known))}" if known else "it has no entries"
        raise CliError(f"{found.location.url} has no release {', '.join(missing)}; {there}", ExitCode.BAD_INPUT)
    if not of_releases and older_than is None and keep_releases is None and unused_for is None:
        unused_for = _UNUSED_DAYS
    chosen = to_clean(
        held.entries,
        now=datetime.now(UTC),
        of_releases=of_releases,
        older_than=None if older_than is None else timedelta(days=older_than),
        keep_releases=keep_releases,
        unused_for=None if unused_for is None else timedelta(days=unused_for),
    )
    if not as_json and chosen:
        console().print(releases_table(releases(chosen)))
        say(f"{entries_and_size(chosen)} of {entries_and_size(held.entries)} in {found.location.url} will be deleted.")
    elif not as_json:
        say(f"Nothing to delete: none of {entries_and_size(held.entries)} in {found.location.url} is selected.")
    if chosen and not yes and not click.confirm("\nDelete this?"):
        say("Nothing was deleted.")
        return ExitCode.NOT_READY
    try:
        with ProgressReporter() as reporter:
            found.cache.delete_entries(
                chosen,
                on_progress=lambda done, of: reporter.report("clean", f"{done:,} of {of:,} objects"),
            )
    except (RequestRefusedError, RequestLimitError) as error:
        raise CliError(f"Deletion incomplete: {error}", ExitCode.NOT_READY) from error
    if as_json:
        deleted = [entry_as_json(entry) for entry in chosen]
        print_json({"url": found.location.url, "deleted": deleted, "requests": found.limit.sent})
    elif chosen:
        say(f"Deleted {entries_and_size(chosen)}.")
    return ExitCode.OK
