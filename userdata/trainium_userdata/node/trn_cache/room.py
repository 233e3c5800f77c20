"""Frees disk space for compilations: deletes places that the job does not use, the longest unused first."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path

from trainium_wire.cache_place import parse_place

LEAST_FREE = 0.2
"""Part of the disk that must be free before a job downloads its entries."""


def make_room(folder: Path, used: Collection[Path]) -> list[str]:
    """Record which places in a folder are used, and delete others while the disk lacks room. Returns their paths.

    Their entries that never reached S3 are deleted too. Raises OSError.
    """
    for place in used:
        place.mkdir(parents=True, exist_ok=True)
        os.utime(place)
    removed: list[str] = []
    others = [each for each in folder.glob("*/*/*/*") if parse_place(str(each.relative_to(folder)))]
    for place in sorted({*others} - {*used}, key=lambda each: each.stat().st_mtime):
        disk = shutil.disk_usage(folder)
        if disk.free >= disk.total * LEAST_FREE:
            break
        shutil.rmtree(place)
        removed.append(str(place.relative_to(folder)))
    return removed
