"""`trn bench`: runs the same workload on each side, several times, and writes the measurements."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from trainium_cli.evidence.bench_runs import Journal, Side, measure, measure_recovery
from trainium_cli.evidence.file_mistakes import file_argument, mistakes_listed
from trainium_cli.evidence.results_files import check_replaceable, recorded_jobs, results_file, write_results
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.jobs.job_engines import read_engine
from trainium_cli.terminal import console, echo, print_json, question, say, table
from trainium_core.aws.prices import AwsPrices
from trainium_core.evidence.bench import MeasuredRun, SidePrices, side_record, with_ratios
from trainium_core.evidence.bench_file import BenchFile, BenchSide, bench_jobs, read_bench_file
from trainium_core.evidence.comparability import with_missing_ratios
from trainium_core.evidence.fidelity import with_fidelity
from trainium_core.evidence.figures import interval_text
from trainium_core.evidence.folder import read_evidence
from trainium_core.evidence.gates import NOT_MEASURED, NOT_MET, WITHIN_NOISE
from trainium_core.evidence.import_file import imported_record
from trainium_core.evidence.metric import FEWEST_RUNS, Metric
from trainium_core.evidence.numbers import number
from trainium_core.evidence.record import (
    LAB,
    LAB_PREFIX,
    Comparability,
    Hardware,
    Record,
    RecordedRun,
    Software,
    Tool,
    record_text,
)
from trainium_core.evidence.software import job_software
from trainium_core.jobs.engine import PriceBasis, check_keys
from trainium_core.jobs.request import JobRequest
from trainium_core.plurals import count
from trainium_core.prices.price import ON_DEMAND, PricedItem
from trainium_core.prices.quotes import quotes
from trainium_runtime.errors import UnavailableError
from trainium_wire.node_record import StoredRecord

_NO_PRICE = "trn estimate has no price for all that is billed by the hour"
_NO_PRICE_OF_LAB = "stand-ins have no price"


@click.command()
@file_argument("bench.toml")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("evidence"),
    help="Folder of the results files. Default: evidence.",
)
@click.option(
    "--import",
    "is_import",
    is_flag=True,
    help="FILE.toml has numbers that exist already, such as those of a GPU: write their results file, and run nothing.",
)
@click.option("--yes", is_flag=True, help="Do not ask before starting billed jobs and terminating nodes.")
@plan_options
@pass_invocation
def bench(invocation: Invocation, file: Path, output: Path, is_import: bool, yes: bool) -> ExitCode:
    """Measure the same workload on each side, and write a results file of each.

    A side is a job file and the cluster that runs it, such as one on Trainium and one on GPUs. FILE.toml names the
    sides, the seeds of the runs, and gates, which are limits of metrics. It must not change after the first run: each
    results file contains its SHA-256. Each side runs one job per seed. If the command is interrupted, run it again:
    jobs that have succeeded are not repeated.

    With `recovery = true`, a side runs one more job, during which one of its nodes is terminated, after confirmation.

    The warm-up has at least warmup_steps steps, and ends when graphs are no longer compiled or loaded. A ratio of two
    sides has a value only if their workloads are comparable. Numbers from the embedded AWS and the node lab are
    labelled as those of stand-ins.

    Exit code 0: the first side meets every gate and every limit of fidelity. 1: a gate or a limit is missed, a job
    failed, a result is missing or invalid, or not confirmed. 2: a file has mistakes or was changed after the first run.
    3: a gate or a limit was not measured, the interval of a gate contains its limit, fewer than three runs of a side
    count, or the state of a job is unknown.
    """
    if is_import:
        return _import(file, output, as_json=invocation.as_json)
    spec, requests = _read(file)
    sides = [_side(invocation, side, requests[side.name]) for side in spec.sides]
    if any(side.engine.bills_jobs or side.config.recovery for side in sides):
        invocation.require_yes(yes)
    if not yes:
        _confirm_terminations(sides)
    journal = Journal.open(output, spec, file)
    _check_results_files(sides, spec, journal, output)
    measure(sides, spec, journal, yes=yes)
    not_recovered = [
        code for side in sides if side.config.recovery and (code := _recover(side, sides, spec, journal, yes=yes))
    ]
    records = with_ratios(
        with_fidelity([_record(side, spec, journal) for side in sides], spec),
        {f"{spec.name}-{side.config.name}": side.runs for side in sides},
    )
    if spec.fidelity is not None and (reference := spec.fidelity.imported) is not None:
        # The report computes the comparison again.
        write_results(reference, output)
    _write(records, output, as_json=invocation.as_json)
    codes = {_exit_code(records), *not_recovered}
    return ExitCode.NOT_READY if ExitCode.NOT_READY in codes else max(codes)


def _import(file: Path, output: Path, *, as_json: bool) -> ExitCode:
    made = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    with mistakes_listed(file):
        record = imported_record(file.read_bytes(), file, made=made, tool=Tool(version=version("trainium-cdk")))
    _write([record], output, as_json=as_json)
    return ExitCode.OK


def _check_results_files(sides: Sequence[Side], spec: BenchFile, journal: Journal, output: Path) -> None:
    """Check before the first run that the results lose no run of the files that they replace. Raises CliError."""
    for side in sides:
        present = results_file(output, f"{spec.name}-{side.config.name}")
        check_replaceable(present, {*journal.jobs.values(), *journal.failed})
        side.recorded = recorded_jobs(present)
    if spec.fidelity is not None and (reference := spec.fidelity.imported) is not None:
        check_replaceable(results_file(output, reference.id), [run.job for run in reference.runs if run.job])


def _write(records: Sequence[Record], folder: Path, *, as_json: bool) -> None:
    """Write the records and show them, with their ratios to the other records in the folder."""
    for record in records:
        write_results(record, folder)
    if as_json:
        print_json({"records": [json.loads(record_text(record)) for record in records]})
    else:
        _show_records(records, folder)


def _recover(side: Side, sides: Sequence[Side], spec: BenchFile, journal: Journal, *, yes: bool) -> ExitCode:
    """Measure the recovery. An error becomes a warning of the record, so that the runs are not lost.

    Returns:
        OK, or the exit code of the error.
    """
    try:
        measure_recovery(side, sides, spec, journal, yes=yes)
    except CliError as error:
        echo(error.message, err=True)
        side.warnings.append(f"the recovery was not measured: {error.message}")
        return ExitCode(error.exit_code)
    return ExitCode.OK


def _read(file: Path) -> tuple[BenchFile, Mapping[str, JobRequest]]:
    with mistakes_listed(file):
        spec = read_bench_file(file.read_bytes(), file)
        return spec, bench_jobs(spec)


def _side(invocation: Invocation, side: BenchSide, request: JobRequest) -> Side:
    """The side with its plan and engine.

    Raises:
        JobError: `recovery` is true, but the engine does not support it.
        PlanError: The plan of the side is not valid.
    """
    own = replace(invocation, cdk_json=side.plan) if side.plan else invocation
    plan, engine = read_engine(own, request.on, None)
    check_keys(engine, {"recovery": side.recovery}, {"recovery": f"sides.{side.name}.recovery"})
    return Side(config=side, plan=plan, engine=engine, invocation=own)


def _confirm_terminations(sides: Sequence[Side]) -> None:
    """Ask whether nodes may be terminated. Raises click.Abort if the user declines."""
    clusters = " and of ".join(side.plan.cluster_name for side in sides if side.config.recovery)
    if clusters:
        text = f"After the runs, a node of {clusters} is terminated while one more job runs. Continue?"
        click.confirm(question(text), abort=True)


def _record(side: Side, spec: BenchFile, journal: Journal) -> Record:
    """The record of the side, with the jobs that failed or were restarted, and were repeated, as excluded runs."""
    state, plan, hardware_kind = side.states[-1], side.plan, side.hardware_kind
    made = datetime.now(UTC)
    basis = side.engine.price_basis(state)
    prices = _prices(side, hardware_kind, basis, made)
    accelerators = 0 if hardware_kind == LAB else plan.type.devices * state.job.nodes
    used = accelerators if state.job.has_ranks else side.config.used
    hardware = Hardware(
        type=f"{LAB_PREFIX}{plan.instance_type}" if hardware_kind == LAB else plan.instance_type,
        nodes=state.job.nodes,
        accelerators=accelerators,
        used=used if side.config.used is None else side.config.used,
        region=plan.region,
        purchase=None if hardware_kind == LAB else basis.purchase,
        usd_hour=prices.paid,
        price_source=prices.source if prices.paid is not None else None,
        price_date=prices.date if prices.paid is not None else None,
    )
    return side_record(
        spec,
        side.config,
        [*side.runs, *_repeated(side, journal)],
        hardware_kind=hardware_kind,
        hardware=hardware,
        software=_software(side),
        prices=prices,
        command=state.job.command,
        made=f"{made:%Y-%m-%dT%H:%M:%SZ}",
        tool=Tool(version=version("trainium-cdk")),
        recovered=side.recovered,
        warnings=tuple(side.warnings),
    )


def _repeated(side: Side, journal: Journal) -> Iterator[MeasuredRun]:
    known = {measured.run.job for measured in side.runs}
    for job in journal.failed.values():
        if job.side == side.config.name and job.job not in known:
            yield MeasuredRun(run=RecordedRun(job=job.job, excluded=f"{job.run}: {job.reason}"))


def _prices(side: Side, hardware_kind: str, basis: PriceBasis, now: datetime) -> SidePrices:
    """US dollars per hour for all nodes: as paid, and EC2's on-demand list price of the instances alone."""
    if hardware_kind == LAB:
        return SidePrices(paid=None, list=None, source="", date="", why_unknown=_NO_PRICE_OF_LAB)
    plan, state = side.plan, side.states[-1]
    paid = side.engine.hourly(state)
    item = PricedItem(product=ON_DEMAND, region=plan.region, instance_type=plan.instance_type)
    aws = AwsPrices(plan.region, clients=side.invocation.clients)
    listed = quotes([item], own=plan.prices, aws=aws).prices.get(item)
    return SidePrices(
        paid=None if paid.unknown or basis.not_paid else float(paid.usd),
        list=None if listed is None or listed.usd is None else float(listed.usd) * state.job.nodes,
        source=f"trn estimate: {basis.includes}; list: the on-demand price in EC2 of the instances alone",
        date=f"{now:%Y-%m-%d}",
        why_unknown=f"{basis.not_paid or _NO_PRICE}; trn tco takes the one that you state in `hours`",
        why_no_list="trn estimate has no on-demand price in EC2 of the instances",
    )


def _software(side: Side) -> Software:
    """The software of a side. If Git reports no commit, git_commit and git_dirty are None."""
    folder = side.config.job.parent
    try:
        commit = _git_output(folder, "rev-parse", "HEAD")
        is_dirty = bool(_git_output(folder, "status", "--porcelain", "--", "."))
    except (OSError, subprocess.SubprocessError):
        commit, is_dirty = None, None
    try:
        records = side.engine.store.node_records()
    except UnavailableError:
        records = dict[str, StoredRecord]()
    return job_software(side.states[-1], records, git_commit=commit, git_dirty=is_dirty)


def _git_output(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


def _exit_code(records: Sequence[Record]) -> ExitCode:
    """The exit code by the gates and the fidelity of the first side, and the runs of all sides."""
    states = {check.state for record in records[:1] for check in (*record.gates, *record.fidelity)}
    if NOT_MET in states:
        return ExitCode.NOT_READY
    is_short = any(sum(run.excluded is None for run in record.runs) < FEWEST_RUNS for record in records)
    return ExitCode.UNKNOWN if is_short or {NOT_MEASURED, WITHIN_NOISE} & states else ExitCode.OK


def _show_records(records: Sequence[Record], folder: Path) -> None:
    out = console()
    for record in records:
        counted = sum(run.excluded is None for run in record.runs)
        out.print(
            f"{record.id}: side {record.side}, {record.hardware.machines}, {counted} of {len(record.runs)} runs count",
            style="bold",
        )
        say("")
        rows = [(name, *_shown(metric)) for name, metric in record.metrics.items()]
        out.print(table(["Metric", "Value", "Interval", "n"], rows, right=["Value", "n"], wrapping=["Value"]))
        gates = [*_gate_rows(record)]
        if gates:
            say("")
            out.print(table(["Gate", "Limit", "Value", "State"], gates, right=["Value"], wrapping=["Gate"]))
        for warning in record.warnings:
            out.print(f"warning: {warning}", style="yellow")
        say("")
    for line in _ratio_lines(records, folder):
        say(line)
    say(f"Written: {', '.join(str(results_file(folder, record.id)) for record in records)}")


def _shown(metric: Metric) -> tuple[str, str, str]:
    n = "" if metric.n is None else str(metric.n)
    if metric.value is None:
        return f"null: {metric.why_null}", "", n
    return f"{number(metric.value)} {metric.unit}", interval_text(metric), n


def _gate_rows(record: Record) -> Iterator[Sequence[str]]:
    for gate in record.gates:
        yield gate.name, gate.limit, "" if gate.value is None else number(gate.value), gate.state
    for check in record.fidelity:
        yield (
            f"{check.method}, against {check.reference}",
            f"<= {number(check.limit)}",
            check.why_null or f"{number(check.value or 0.0)}, {count(check.compared, 'value')}",
            check.state,
        )


def _ratio_lines(records: Sequence[Record], folder: Path) -> Iterator[str]:
    """The ratios of the first record, and those of Trainium records in the folder to it if it was imported."""
    written = {record.id for record in records}
    files = {path.name: path.read_bytes() for path in sorted(folder.glob("*.json"))}
    others = read_evidence(files, datetime.now(UTC)).records.values()
    for record in with_missing_ratios([*records, *(other for other in others if other.id not in written)]):
        for compared in record.comparable:
            if record.id == records[0].id or (record.id not in written and compared.against in written):
                yield from _comparison_lines(record, compared)


def _comparison_lines(record: Record, compared: Comparability) -> Iterator[str]:
    for name, ratio in compared.ratios.items():
        value, interval, _ = _shown(ratio)
        parts = (value, interval, ratio.source, None if interval else ratio.why_null)
        shown = ratio.why_null if ratio.value is None else ", ".join(filter(None, parts))
        yield f"{name}, {record.id} / {compared.against}: {shown}"
