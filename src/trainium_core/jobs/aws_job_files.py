"""The files of a job that its nodes describe in lists: symbolic links of outputs, and checkpoints."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from trainium_core.jobs.aws_job_bucket import JobBucket
from trainium_core.jobs.copying import paths_through_links
from trainium_wire.job import part_rank
from trainium_wire.job_keys import INCOMPLETE_CHECKPOINTS, OUTPUTS, job_keys, output_path

CHECKPOINTS = "checkpoints"
"""Name of the folder with the checkpoints, in the paths of a job's files."""

_LARGEST_LIST = 67_108_864
_PART = re.compile(r"[0-9]{1,9}-[0-9]{1,9}-[0-9]{1,9}")


def output_links(objects: JobBucket, job_id: str) -> Mapping[str, str]:
    """The symbolic links in the outputs of a job, as targets by path."""
    links: dict[str, str] = {}
    for key in objects.keys(job_keys(job_id).output_lists):
        if match := re.search(r"/(\d+)\.json$", key):
            for path, target in _items((objects.json(key, most=_LARGEST_LIST) or {}).get("links")).items():
                links[f"{OUTPUTS}/{output_path(int(match[1]), path)}"] = str(target)
    return links


def checkpoint_files(
    objects: JobBucket, bucket: str, prefix: str, names: Iterable[str]
) -> Mapping[str, tuple[str, int]]:
    """The key and size of each file of complete checkpoints, by path. The lowest rank's copy of a file keeps its path.

    Of files beside a checkpoint, such as DeepSpeed's `latest`, those of the newest checkpoint keep their path.

    Args:
        objects: Sends the requests.
        bucket: The bucket with the checkpoints.
        prefix: Prefix of their keys.
        names: The checkpoints, newest last.
    """
    found: dict[str, tuple[str, int]] = {}
    for name in names:
        parts = (objects.json(f"{prefix}{name}.json", bucket=bucket) or {}).get("parts")
        listed = cast("list[Any]", parts) if isinstance(parts, list) else []
        for part in sorted((text for text in listed if _PART.fullmatch(str(text))), key=part_rank):
            for relative, (stored, size) in _part_files(objects, f"{prefix}{name}/{part}.json", bucket).items():
                path = f"{CHECKPOINTS}/{relative}"
                is_beside = "/" not in relative and relative != name
                if path in found and not is_beside:
                    path = f"{CHECKPOINTS}/node-{part_rank(part)}/{relative}"
                found[path] = (f"{prefix}{name}/{part}/{stored}", size)
    return found


def incomplete_checkpoint_files(
    objects: JobBucket, job_id: str, bucket: str, prefix: str
) -> Mapping[str, tuple[str, int]]:
    """The key and size of each stored file of the checkpoints that were incomplete at the end, by node and path.

    Args:
        objects: Sends the requests.
        job_id: The job.
        bucket: The bucket with the checkpoints.
        prefix: Prefix of their keys.
    """
    record = objects.json(job_keys(job_id).incomplete_checkpoints, most=_LARGEST_LIST) or {}
    found: dict[str, tuple[str, int]] = {}
    for name, parts in _items(record.get("parts")).items():
        for part in filter(_PART.fullmatch, map(str, cast("list[Any]", parts) if isinstance(parts, list) else [])):
            for relative, (stored, size) in _part_files(objects, f"{prefix}{name}/{part}.json", bucket).items():
                path = f"{INCOMPLETE_CHECKPOINTS}/node-{part_rank(part)}/{relative}"
                found[path] = (f"{prefix}{name}/{part}/{stored}", size)
    return found


def _part_files(objects: JobBucket, key: str, bucket: str) -> Mapping[str, tuple[str, int]]:
    """The files and sizes in the record of a part of a checkpoint, by path. Links are paths of their targets.

    Objects that the record does not name are not listed.
    """
    record = objects.json(key, bucket=bucket, most=_LARGEST_LIST) or {}
    listed, links = (_items(record.get(name)) for name in ("files", "links"))
    sizes = {name: _items(entry).get("size") for name, entry in listed.items()}
    files = {name: (name, size) for name, size in sizes.items() if isinstance(size, int)}
    targets = {name: str(target) for name, target in links.items()}
    return {**files, **{path: files[file] for path, file in paths_through_links(files, targets).items()}}


def _items(raw: object) -> Mapping[str, Any]:
    """An object in JSON; empty if it is not one."""
    return cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
