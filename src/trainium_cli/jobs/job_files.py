"""Files of a job, fetched from S3 to this machine."""

from pathlib import Path, PurePosixPath

import click

from trainium_core.jobs.engine import JobEngine
from trainium_runtime.errors import UnavailableError


def download(jobs: JobEngine, job_id: str, wanted: str, target: Path) -> list[Path]:
    """What is below a folder of a job, into a directory; or one file, which is then called `target`.

    Names that lead out of the directory are left out: any process of a node can choose them. Raises UnavailableError,
    and OSError for what cannot be written.
    """
    fetched: list[Path] = []
    root = target.resolve()
    for name in jobs.files(job_id, wanted):
        if name == wanted:
            path = root / PurePosixPath(name).name if root.is_dir() else root
        else:
            path = (root / name.removeprefix(wanted).lstrip("/")).resolve()
            if not path.is_relative_to(root) or path == root:
                continue
        path.parent.mkdir(parents=True, exist_ok=True)
        jobs.download(job_id, name, str(path))
        fetched.append(path)
    return fetched


def fetch_outputs(jobs: JobEngine, job_id: str, folder: Path) -> None:
    """Fetch what a job has left into a folder, and say how much; says why when that fails."""
    try:
        fetched = download(jobs, job_id, "outputs", folder)
    except (UnavailableError, OSError) as error:
        click.echo(f"The outputs were not fetched: {error}", err=True)
        return
    click.echo(f"{len(fetched)} files of {job_id} are in {folder}.", err=True)
