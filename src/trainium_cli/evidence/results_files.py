"""Writing results files, without replacing one that has the runs of other jobs."""

from collections.abc import Collection, Set
from pathlib import Path

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_core.evidence.record import Record, RecordError, read_record, record_text
from trainium_core.plurals import count


def results_file(folder: Path, record_id: str) -> Path:
    return folder / f"{record_id}.json"


def recorded_jobs(file: Path) -> Set[str]:
    """The jobs whose runs a results file has; empty if there is no file.

    Raises:
        CliError: The file is not a results file.
    """
    if not file.exists():
        return set()
    try:
        return {run.job for run in read_record(file.read_bytes()).runs if run.job}
    except (OSError, RecordError) as error:
        raise CliError(f"{file} would be replaced: {error}. Choose another --output.", ExitCode.BAD_INPUT) from error


def check_replaceable(file: Path, jobs: Collection[str]) -> None:
    """Check that a results file with the runs of these jobs loses no run of the present file.

    Raises:
        CliError: The present file has runs of other jobs, or is not a results file.
    """
    if lost := sorted(recorded_jobs(file) - {*jobs}):
        message = f"{file} has {count(len(lost), 'run')} of `trn bench` that would be lost, such as that of {lost[0]}."
        raise CliError(f"{message} Choose another --output, or another ID of the new results.", ExitCode.BAD_INPUT)


def write_results(record: Record, folder: Path) -> Path:
    """Write the results file of a record.

    Raises:
        CliError: A file with its name has runs of jobs that the record does not have, or is not a results file.
    """
    file = results_file(folder, record.id)
    check_replaceable(file, [run.job for run in record.runs if run.job])
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(record_text(record), encoding="utf-8")
    return file
