"""Fetches files of a job from S3."""

import os
from collections.abc import Sequence
from pathlib import Path

from trainium_cli.quantities import size
from trainium_cli.terminal import echo
from trainium_cli.waiting import waiting
from trainium_core.jobs.engine import JobFiles
from trainium_core.plurals import count
from trainium_runtime.errors import UnavailableError


def download(jobs: JobFiles, job_id: str, wanted: str, target: Path, *, overwrite: bool = False) -> int:
    """Fetch one file of a job, or a folder as a new directory.

    The names below a folder are chosen by processes on nodes, so an existing directory is written into only with
    `overwrite`.

    Args:
        jobs: Files of the jobs.
        job_id: ID of the job.
        wanted: Path in the job's folder.
        target: Path of the new file or directory.
        overwrite: Replace existing files.

    Returns:
        The number of fetched files.

    Raises:
        UnavailableError: A request failed or was denied.
        FileExistsError: The target exists, and `overwrite` is false.
        OSError: The target cannot be written.
    """
    names = jobs.files(job_id, wanted)
    if names and os.path.lexists(target) and not overwrite:
        raise FileExistsError(f"{target} exists: remove it or specify another path")
    root = target.resolve()
    if wanted in names:
        paths = {wanted: root}
    else:
        below = {name: (root / name.removeprefix(wanted).lstrip("/")).resolve() for name in names}
        paths = {name: path for name, path in below.items() if path.is_relative_to(root) and path != root}
        for name in sorted(set(names) - set(paths)):
            echo(f"Not fetched: {name}, which is not a path inside {target}.", err=True)
    for name, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        jobs.download(job_id, name, str(path))
    return len(paths)


def fetch_outputs(jobs: JobFiles, job_id: str, folder: Path) -> None:
    """Fetch a job's outputs into a folder named after the job. Prints the result."""
    target = folder / job_id
    try:
        fetched = download(jobs, job_id, "outputs", target)
        has_checkpoints = not fetched and bool(jobs.files(job_id, "checkpoints"))
    except (UnavailableError, OSError) as error:
        echo(f"Not all outputs were fetched: {error}", err=True)
        return
    files = "1 file is" if fetched == 1 else f"{fetched} files are"
    none = f"There are no outputs of {job_id} to fetch."
    hint = f" To fetch its checkpoints: `trn cp {job_id}:checkpoints DIR`." if has_checkpoints else ""
    echo(f"{files} in {target}." if fetched else f"{none}{hint}", err=True)


def fetch_results(jobs: JobFiles, job_id: str, folder: Path, kinds: Sequence[str]) -> Sequence[str]:
    """Fetch folders of a job into FOLDER/JOB/KIND. Existing files are replaced.

    Args:
        jobs: Files of the jobs.
        job_id: ID of the job.
        folder: The local folder.
        kinds: Folders of the job: outputs, checkpoints.

    Returns:
        The files that were not fetched whole, each with the reason; empty if all were.
    """
    problems: list[str] = []
    for kind in kinds:
        target = folder / job_id / kind
        try:
            sizes = jobs.files(job_id, kind)
            if not sizes:
                continue
            with waiting(f"Fetching {count(len(sizes), 'file')} ({size(sum(sizes.values()))}) to {target} ..."):
                download(jobs, job_id, kind, target, overwrite=True)
        except (UnavailableError, OSError) as error:
            problems.append(f"{kind}: {error}")
            continue
        lacking = [name for name, stored in sizes.items() if _local_size(folder / job_id / name) != stored]
        problems += [f"{name}: the local file is missing or has another size" for name in lacking]
        if not lacking:
            echo(f"{target}: {count(len(sizes), 'file')}, {size(sum(sizes.values()))}.", err=True)
    return problems


def _local_size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None
