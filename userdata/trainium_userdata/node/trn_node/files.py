"""The node's files, below the folder in the variable ROOT, by default /."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

from trainium_wire.keys import instance_name

PLAN = "etc/trn/plan.json"
LOCATIONS = "etc/trn/places.env"
RECORD = "var/lib/trn/record.json"


def path(name: str) -> Path:
    return Path(os.environ.get("ROOT") or "/") / name


def read(name: str) -> str:
    """The text of a file; empty if it does not exist or cannot be read."""
    try:
        return path(name).read_text(errors="replace")
    except OSError:
        return ""


def write(name: str, text: str) -> None:
    """Replace a file atomically. Raises OSError."""
    file = path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.new")
    with new.open("w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)


def plan() -> dict[str, Any]:
    """The plan's expectations of the node. Raises OSError or ValueError if the file is missing or not JSON."""
    return cast("dict[str, Any]", json.loads(path(PLAN).read_text()))


def locations() -> dict[str, str]:
    """Region, URLs and file systems of the cluster, by variable name."""
    lines = (line.split("=", 1) for line in read(LOCATIONS).splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, value in lines}


def own_name(instance_id: str) -> str:
    """The name of an instance's objects in S3."""
    return instance_name(instance_id, locations().get("TRN_ROLE_ID"))


def location(name: str) -> str:
    """One of the locations. Raises OSError if it is missing."""
    value = locations().get(name)
    if not value:
        raise OSError(f"/{LOCATIONS} has no {name}")
    return value
