"""Downloads the checkpoint that an attempt resumes from."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

from trainium_wire.job import ALL_FILES, part_rank, saved_otherwise
from trainium_wire.job_keys import job_keys
from trn_node.objects import file_digest

from .completeness import POINTER
from .file_tree import LinkError, make_links
from .launch import Launch
from .store import CONNECTIONS, Store


class CheckpointError(Exception):
    """A sentence on why the job cannot continue from a checkpoint."""


def download(launch: Launch, store: Store, folder: Path) -> tuple[Path, list[str]]:
    """Download the checkpoint of the launch to a folder: all files, or only those of this node and node 0.

    If several nodes have saved a file with the same name, a node gets its own, or that of the lowest rank.

    Returns:
        The path of the checkpoint in the folder, and the names of its files that only other nodes have saved.

    Raises:
        CheckpointError: The checkpoint does not exist, is incomplete, was changed, or does not suit the job.
        OSError: S3 does not answer or refuses, or the disk fails.
    """
    job, name, store = launch.resume_job or "", launch.resume_from or "", store.at(launch.checkpoints_url)
    keys, what = job_keys(job, ""), f"checkpoint {name} of job {job}"
    manifest = store.read(keys.checkpoint(name))
    if not manifest:
        raise CheckpointError(f"there is no complete checkpoint {name} of job {job}")
    difference = saved_otherwise(manifest, launch.spec)
    if difference:
        raise CheckpointError(f"{what} {difference}: run the job with as many, or convert the checkpoint")
    if name in ("", "..") or "/" in name:
        raise CheckpointError(f"{name!r} is not the name of a checkpoint")
    parts = sorted(manifest["parts"], key=lambda part: (part_rank(part) != launch.rank, part_rank(part)))
    if launch.spec.resume_files != ALL_FILES:
        own = [part for part in parts if part_rank(part) in (0, launch.rank)]
        parts = own or parts
    files: dict[str, tuple[str, Mapping[str, Any]]] = {}
    links: dict[str, str] = {}
    for part in parts:
        record = store.read(keys.checkpoint_part(name, part))
        if not record:
            raise CheckpointError(f"{what} lacks the part of node {part_rank(part)}")
        for relative, entry in record["files"].items():
            files.setdefault(relative, (part, entry))
        links = {**record.get("links", {}), **links}

    def fetch(relative: str) -> None:
        part, entry = files[relative]
        path, file = PurePosixPath(relative), folder / relative
        is_inside = relative == POINTER or (path.parts[:1] == (name,) and ".." not in path.parts)
        if not is_inside or not store.download(keys.checkpoint_file(name, part, relative), file):
            raise CheckpointError(f"{what} lacks its file {relative}")
        if file.stat().st_size != entry["size"] or file_digest(file) != entry["sha256"]:
            raise CheckpointError(f"the file {relative} of {what} is not the one that was saved")

    with ThreadPoolExecutor(CONNECTIONS) as readers:
        list(readers.map(fetch, files))
    try:
        make_links(folder, links)
    except LinkError as error:
        raise CheckpointError(f"{what} has {error}") from None
    return folder / name, [relative for relative, (part, _) in files.items() if part_rank(part) != launch.rank]
