"""`trn cache verify` and `trn cache repair`: every entry against its checksum."""

from dataclasses import asdict
from datetime import UTC, datetime

import click

from trainium_cli.cache.cache_options import CacheOptions, FoundCache, cache_options, find_cache, read_contents
from trainium_cli.cache.cache_report import broken_table, entries_and_size, entry_as_json
from trainium_cli.exit_codes import ExitCode
from trainium_cli.jobs.job_cluster import end
from trainium_cli.progress_reporter import ProgressReporter
from trainium_cli.terminal import console, print_json, say
from trainium_core.compile_cache.aws_cache import RequestLimitError
from trainium_core.compile_cache.maintenance import Verification, repair, verify
from trainium_runtime.errors import RequestRefusedError, UnavailableError


@click.command("verify")
@cache_options
def verify_command(options: CacheOptions, as_json: bool) -> None:
    """Read every packed entry, and hold it against the checksum that it was stored with. Changes nothing.

    One request for each, and its bytes are read. Entries that PyTorch/XLA wrote itself have no checksum; those of them
    that are not finished, and that nobody wrote for two hours, are broken: a lock there keeps others waiting.

    Exit code 0: none is broken. 1: some are: `trn cache repair` deletes them. 3: could not tell of all.
    """
    found = find_cache(options, as_json=as_json)
    result = _verified(found, as_json=as_json)
    if as_json:
        print_json({**_as_json(found, result)})
    else:
        _show(result)
    raise click.exceptions.Exit(_exit_code(result))


@click.command("repair")
@cache_options
@click.option("--yes", is_flag=True, help="Delete without asking first, for scripts.")
def repair_command(options: CacheOptions, as_json: bool, yes: bool) -> None:
    """Delete the entries that verify finds broken, after asking. The next node that compiles one stores it anew.

    Exit code 0: none is broken any more. 1: some still are. 3: could not tell of all.
    """
    if as_json and not yes:
        raise click.UsageError("with --json nobody is asked: give --yes as well")
    found = find_cache(options, as_json=as_json)
    result = _verified(found, as_json=as_json)
    if not as_json:
        _show(result)
    if result.broken and not yes and not click.confirm("\nDelete what is broken?"):
        say("Nothing was deleted.")
        raise click.exceptions.Exit(ExitCode.NOT_READY)
    deleted = 0
    try:
        with ProgressReporter() as reporter:
            deleted = repair(
                found.cache,
                result.broken,
                on_progress=lambda done, of: reporter.report("repair", f"{done:,} of {of:,} entries"),
            )
    except UnavailableError as error:
        end(ExitCode.COULD_NOT_TELL, f"Could not tell: {error}", as_json=as_json)
    except (RequestRefusedError, RequestLimitError) as error:
        end(ExitCode.NOT_READY, f"Not everything was deleted: {error}", as_json=as_json)
    if as_json:
        print_json({**_as_json(found, result), "deleted": deleted})
    elif result.broken:
        kept = len(result.broken) - deleted
        say(f"Deleted {deleted:,}." + (f" {kept:,} changed meanwhile, and stayed." if kept else ""))
    raise click.exceptions.Exit(ExitCode.COULD_NOT_TELL if result.unknown else ExitCode.OK)


def _verified(found: FoundCache, *, as_json: bool) -> Verification:
    entries = read_contents(found.cache, as_json=as_json).entries
    try:
        with ProgressReporter() as reporter:
            return verify(
                found.cache,
                entries,
                now=datetime.now(UTC),
                on_progress=lambda done, of: reporter.report("verify", f"{done:,} of {of:,} entries"),
            )
    except UnavailableError as error:
        end(ExitCode.COULD_NOT_TELL, f"Could not tell: {error}", as_json=as_json)


def _exit_code(result: Verification) -> ExitCode:
    if result.broken:
        return ExitCode.NOT_READY
    return ExitCode.COULD_NOT_TELL if result.unknown else ExitCode.OK


def _as_json(found: FoundCache, result: Verification) -> dict[str, object]:
    broken = [{**entry_as_json(one.entry), "why": one.why} for one in result.broken]
    return {"url": found.location.url, **asdict(result), "broken": broken, "requests": found.limit.sent}


def _show(result: Verification) -> None:
    out = console()
    if result.broken:
        out.print(broken_table(result.broken))
        out.print()
    parts = [
        f"{result.sound:,} sound",
        f"{len(result.broken):,} broken ({entries_and_size([one.entry for one in result.broken])})"
        if result.broken
        else "none broken",
        f"{result.without_checksum:,} without checksum, of PyTorch/XLA itself" if result.without_checksum else "",
        f"{result.in_work:,} in work" if result.in_work else "",
        f"{result.unknown:,} not looked at: --most-requests allows more" if result.unknown else "",
    ]
    say("; ".join(part for part in parts if part))
