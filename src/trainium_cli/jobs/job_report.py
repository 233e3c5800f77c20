"""Jobs as tables and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from statistics import fmean
from typing import Any

from trainium_cli.invocation import Invocation
from trainium_cli.layout import Table
from trainium_cli.quantities import duration, percent, size, sparkline
from trainium_cli.terminal import console, echo, pairs, table
from trainium_core.costs.estimate import Total, dollars
from trainium_core.engines.registry import ENGINES
from trainium_core.jobs.downloads import downloads
from trainium_core.jobs.engine import JobEngine, PreparedJob
from trainium_core.jobs.progress import JobState
from trainium_core.jobs.record import attempt_records, attempt_seconds
from trainium_core.jobs.source_files import left_out_text
from trainium_core.jobs.source_package import SourcePackage
from trainium_core.plan import Plan
from trainium_core.plurals import count
from trainium_wire.formats import moment
from trainium_wire.job import Job, Outcome
from trainium_wire.job_progress import CacheUse
from trainium_wire.metric_sample import known_sum

_BAR = 30
_HOUR = 3600
_LONGEST_COMMAND = 400
_MAX_CACHE_WARNINGS = 3
_MAX_DOWNLOADS = 5
_MAX_OBSERVED = 5
_NODES_SHOWN = 8
_PRECISE = 100
_RATES = {"steps_per_second": "steps/s", "tokens_per_second": "tokens/s"}


def source_row(package: SourcePackage) -> tuple[str, str]:
    """The label and the size of the packed source."""
    files = "1 file" if len(package.names) == 1 else f"{len(package.names)} files"
    return "source", f"{files}, {size(package.unpacked_bytes)}, packed {size(len(package.archive))}"


def report_source(invocation: Invocation, plan: Plan, engine: JobEngine, setup: str | None, job: PreparedJob) -> None:
    """Report what the packed source lacks: files that are not packed, and what a network without internet withholds."""
    if job.package.left_out:
        echo(f"Left out of the source: {left_out_text(job.package.left_out)}", err=True)
        if ".gitignore" in job.package.left_out.values():
            echo("If the job needs one, write a .trnignore, which replaces .gitignore, or use --input.", err=True)
    if ENGINES[engine.key].has_internet(plan):
        return
    found = downloads(setup, job.package)
    if found:
        echo(_no_internet(found, is_aws=invocation.reaches_aws(plan.region)), err=True)


def _no_internet(found: Sequence[str], *, is_aws: bool) -> str:
    shown, more = list(found[:_MAX_DOWNLOADS]), len(found) - _MAX_DOWNLOADS
    if more > 0:
        shown.append(f"and {more} more")
    here = "" if is_aws else " Here the job runs on this machine, and can reach what this machine reaches."
    return "\n".join(
        [
            f"warning: the nodes of this plan have no internet access.{here} The job downloads:",
            *(f"  {text}" for text in shown),
            "Send packages as wheels in the source, and weights and data with --input, or set trn:egress=nat-gateway.",
        ]
    )


def jobs_table(found: Sequence[tuple[str, JobState]]) -> Table:
    """The jobs, with their engines if there are several, and with who submitted them if these are several."""
    columns: dict[str, list[str]] = {
        "Job": [state.job.id for _, state in found],
        "On": [engine for engine, _ in found],
        "By": [state.job.submitted_by or "unknown" for _, state in found],
        "Status": [state.status for _, state in found],
        "Nodes": [str(state.job.nodes) for _, state in found],
        "Attempts": [str(state.attempt_count) for _, state in found],
        "Submitted (UTC)": [state.job.submitted_at.replace("T", " ").removesuffix("Z") for _, state in found],
        "Lasted": [duration(lasted_seconds(state)) for _, state in found],
    }
    shown = {name: texts for name, texts in columns.items() if name not in ("On", "By") or len({*texts}) > 1}
    return table([*shown], [*zip(*shown.values(), strict=True)], right=["Nodes", "Attempts", "Lasted"])


def state_rows(state: JobState, running_hour: Total | None) -> list[tuple[str, str]]:
    """The state of a job. Unknown values are left out."""
    progress: Mapping[str, str] = {}
    if state.attempts and state.attempts[-1].nodes:
        progress = state.attempts[-1].nodes[0].progress
    rows = [
        ("job", state.job.id),
        ("status", state.status),
        ("detail", "" if state.is_over else state.detail),
        ("where", "" if state.outcome is None or state.outcome.is_success else _where(state.outcome)),
        ("nodes", _nodes(state.job)),
        ("by", state.job.submitted_by),
        ("attempts", str(len(state.attempts)) if state.attempts else "none yet"),
        ("progress", progress_text(progress)),
        ("cache", "; ".join(cache_lines(state))),
        ("observed", "; ".join(observed_lines(state))),
        ("busy", "; ".join(utilization_lines(state))),
        ("profile", _profile(state.job)),
        ("lasted", duration(lasted_seconds(state))),
        ("cost", _cost(state, running_hour)),
        ("resumes", state.job.resume_from or ""),
        *state.places.items(),
        ("command", _shortened(state.job.command)),
    ]
    return [(label, value) for label, value in rows if value]


def progress_text(progress: Mapping[str, str]) -> str:
    """The values of a progress line as a person would write them."""
    parts = [f"{name} {value}" for name, value in progress.items() if name != "last_at" and name not in _RATES]
    parts += [f"{_rounded(progress[name])} {unit}" for name, unit in _RATES.items() if name in progress]
    return ", ".join(parts)


def _rounded(number: str) -> str:
    try:
        value = float(number)
    except ValueError:
        return number
    return f"{value:,.0f}" if abs(value) >= _PRECISE else f"{value:.3g}"


def _shortened(command: str) -> str:
    return command if len(command) <= _LONGEST_COMMAND else f"{command[:_LONGEST_COMMAND].rsplit(maxsplit=1)[0]} ..."


def _profile(job: Job) -> str:
    """Where the profile is, and how to open it."""
    if not job.profile:
        return ""
    what = ("rank" if job.has_ranks else "node") + ("s" if len(job.profile) > 1 else "")
    ranks = ", ".join(map(str, job.profile))
    nodes = sorted({rank // job.processes_per_node if job.has_ranks else rank for rank in job.profile})
    first, *others = (f"outputs/node-{node}/profile" if node else "outputs/profile" for node in nodes)
    more = f" (others: {', '.join(others)})" if others else ""
    return (
        f"of {what} {ranks}, not for timing: `trn cp {job.id}:{first} profile`{more}, then "
        "`neuron-explorer view -d profile`"
    )


def phases_table(state: JobState, running_hour: Total | None) -> Table | None:
    """The time of waking, queuing, and each phase of each attempt on its slowest node; None if all are unknown."""
    rows = [
        line for line in job_record(state, running_hour) if line["event"] == "phase" and line["seconds"] is not None
    ]
    if not rows:
        return None
    longest = max(line["seconds"] for line in rows) or 1
    return table(
        ["Attempt", "Phase", "Time", "Cost", ""],
        [
            (
                str(line["attempt"] or ""),
                line["phase"].replace("_", " "),
                duration(line["seconds"]),
                "" if line["usd"] is None else dollars(Decimal(str(line["usd"]))),
                "█" * round(_BAR * line["seconds"] / longest),
            )
            for line in rows
        ],
        right=["Attempt", "Time", "Cost"],
    )


def attempt_rows(state: JobState, running_hour: Total | None) -> Iterator[tuple[str, str]]:
    """The cost of each restart, the graphs that the first node of each attempt compiled, the end of each attempt but
    the last, and lost results. Leaves out the graphs of the last attempt if the row `cache` shows them.
    """
    has_cache_row = any(cache_lines(state))
    for line in job_record(state, running_hour):
        if line["event"] == "restart" and line["seconds"] is not None:
            yield f"attempt {line['attempt']}", _restart(line)
        is_last = line.get("attempt") == len(state.attempts)
        if line["event"] == "graphs" and line["node"] == 0 and not (is_last and has_cache_row):
            compiled, cached = (line["graphs"].get(name, 0) for name in ("compiled", "cached"))
            yield f"attempt {line['attempt']}", f"{count(compiled, 'graph')} compiled, {cached} from the cache"
        if line["event"] == "attempt-end" and not (state.is_over and is_last):
            yield f"attempt {line['attempt']}", f"{line['result']}: {line['reason']}"
    for attempt in state.attempts:
        for node in attempt.nodes:
            is_over = state.outcome is not None or attempt.number < len(state.attempts)
            lost = node.unstored if is_over and not node.has_ended else node.lost
            if lost and not (state.outcome and lost in state.outcome.reason):
                yield f"attempt {attempt.number}", f"node {node.node}: {lost}"


def job_record(state: JobState, running_hour: Total | None) -> list[Mapping[str, Any]]:
    """The lines of the record, with costs unless the hourly cost is unknown."""
    is_known = running_hour is not None and not (running_hour.unknown and not running_hour.usd)
    return list(attempt_records(state, running_hour.usd if running_hour and is_known else None))


def _restart(line: Mapping[str, Any]) -> str:
    checkpoint = line["checkpoint"]
    lost = (
        f"of work since checkpoint {checkpoint}" if checkpoint else "of work, or less if it continued from its outputs"
    )
    at_most = "" if checkpoint or line["lost_seconds"] is None else "at most "
    parts = [
        (line["lost_seconds"], lost),
        (line["waited_seconds"], "until its nodes were available"),
        (line["begun_seconds"], "until it ran again"),
    ]
    parts_shown = ", ".join(f"{duration(seconds)} {what}" for seconds, what in parts if seconds is not None)
    cost = "" if line["usd"] is None else f", {dollars(Decimal(str(line['usd'])))}"
    return f"the restart cost {at_most}{duration(line['seconds'])}{cost}: {parts_shown}"


def show_state(state: JobState, hourly: Total, *, is_aws: bool) -> None:
    """Print a job without the reason of its end: its state, its attempts, and the time of each phase."""
    console().print(pairs([*state_rows(state, hourly), *attempt_rows(state, hourly)], label_width=11))
    phases = phases_table(state, hourly)
    if phases is not None:
        console().print()
        console().print(phases)
    if not is_aws:
        echo("Measured on the CPUs of this machine, not on Trainium; costs are those of the same time on AWS.")


def state_line(state: JobState, seconds: float) -> str:
    """A line for a change of state, `seconds` after the submission of the job. It has no reason for the job's end."""
    attempt = f", attempt {len(state.attempts)}" if len(state.attempts) > 1 else ""
    last = state.attempts[-1].outcome if state.attempts and state.is_retried else None
    detail = "" if state.is_over else last.reason if last else state.detail
    return f"[{duration(seconds)}] {state.status}{attempt}{f': {detail}' if detail else ''}"


def cache_lines(state: JobState) -> Iterator[str]:
    """The compile caches on the first node of the last attempt, then the first warnings and failures of its nodes."""
    if not state.attempts or not state.attempts[-1].nodes:
        return
    nodes = state.attempts[-1].nodes
    for use in nodes[0].caches:
        if use.place:
            yield _cache_line(use)
    texts = (text for node in nodes for use in node.caches for text in (*use.warnings, *use.failed))
    yield from [*dict.fromkeys(texts)][:_MAX_CACHE_WARNINGS]


def utilization_lines(state: JobState) -> Iterator[str]:
    """The mean utilization of the nodes in the last attempt, that of each node over time, and errors."""
    nodes = state.attempts[-1].nodes if state.attempts else ()
    measured = [(node.node, node.utilization) for node in nodes if node.utilization]
    if not measured:
        return
    means = [found.core_utilization for _, found in measured if found.core_utilization is not None]
    yield f"cores {percent(fmean(means) if means else None)} on average"
    by_load = sorted(measured, key=lambda one: one[1].core_utilization or 0)
    for node, found in by_load[:_NODES_SHOWN]:
        yield f"node {node} {percent(found.core_utilization)} {sparkline(found.over_time)}"
    if len(measured) > _NODES_SHOWN:
        yield f"{len(measured) - _NODES_SHOWN} more nodes"
    for name, words in (
        ("execution_errors", "executions with errors"),
        ("ecc_uncorrected", "uncorrected memory errors"),
    ):
        if total := known_sum([getattr(found, name) for _, found in measured]):
            yield f"{total:g} {words}"


def observed_lines(state: JobState) -> Iterator[str]:
    """The counters of the frameworks on the first node of the last attempt; empty without `observe`."""
    observed = state.attempts[-1].nodes[0].observed if state.attempts and state.attempts[-1].nodes else None
    if observed is None:
        return
    if not observed.processes:
        yield "no process has written counters: PyTorch/XLA or TorchNeuron was not loaded, or the process was killed"
    else:
        yield f"{count(observed.compiled, 'graph')} compiled in {duration(observed.compile_seconds)}"
        yield f"on the CPU: {_largest(observed.fallbacks)}" if observed.fallbacks else "no operator on the CPU"
    if observed.reasons:
        yield f"reasons for compilation: {_largest(observed.reasons)}"
    if observed.errors:
        yield f"compiler errors: {_largest(observed.errors)}"


def _largest(counts: Mapping[str, int]) -> str:
    first = [f"{name} {count:,}" for name, count in list(counts.items())[:_MAX_OBSERVED]]
    more = len(counts) - len(first)
    return ", ".join([*first, *([f"{more} more"] if more else [])])


def _cache_line(use: CacheUse) -> str:
    reasons = ", ".join(f"{many} {why}" for why, many in use.reasons.items() if many)
    parts = [
        f"{use.at_start} entries at the start" if use.hits is None else f"{use.hits} hits",
        f"{use.misses} misses" + (f" ({reasons})" if reasons else ""),
        f"{duration(use.compile_seconds)} compiled" if use.compile_seconds else "",
        f"{size(use.fetched_bytes)} fetched" if use.fetched else "",
        f"{size(use.stored_bytes)} stored" if use.stored else "",
        f"{use.renewed} renewed" if use.renewed else "",
        f"{use.recompiled} compiled after the first step" if use.recompiled else "",
    ]
    return f"{use.stack}: {', '.join(part for part in parts if part)}"


def state_as_json(state: JobState, record: Sequence[Mapping[str, Any]] | None = None) -> Mapping[str, Any]:
    """A job, and its record if one is passed."""
    more = {} if record is None else {"record": record}
    return {"status": state.status, "seconds": lasted_seconds(state), **asdict(state), **more}


def _nodes(job: Job) -> str:
    return f"{job.nodes}, {job.processes_per_node} processes each" if job.world_size else str(job.nodes)


def _where(outcome: Outcome) -> str:
    named = [
        f"node {outcome.node}" if outcome.node is not None else "",
        outcome.instance_id,
        f"rank {outcome.rank}" if outcome.rank is not None else "",
        f"exit code {outcome.exit_code}" if outcome.exit_code is not None else "",
    ]
    return ", ".join(part for part in named if part)


def lasted_seconds(state: JobState) -> float:
    """Seconds from the submission of a job until its nodes are free, or until now; 0 if the submission is unknown."""
    begun = moment(state.job.submitted_at)
    ended = state.freed_at or datetime.now(UTC)
    return max(0.0, (ended - begun).total_seconds()) if begun else 0.0


def _cost(state: JobState, running_hour: Total | None) -> str:
    if running_hour is None:
        return ""
    if running_hour.unknown and not running_hour.usd:
        return str(running_hour)
    if state.is_billed:
        if state.billed_seconds is None:
            return ""
        billed = dollars(running_hour.usd * state.billed_seconds / _HOUR)
        return f"{billed} for {duration(state.billed_seconds)} of billed time"
    least = "at least " if running_hour.unknown else ""
    if state.has_own_nodes:
        seconds = attempt_seconds(state)
        if seconds is None:
            return ""
        usd = running_hour.usd * Decimal(seconds) / _HOUR
        return (
            f"{least}{dollars(usd)} for {duration(seconds)} of its attempts; nodes also cost while they start and idle"
        )
    usd = running_hour.usd * Decimal(lasted_seconds(state)) / _HOUR
    return f"{least}{dollars(usd)} for the cluster"
