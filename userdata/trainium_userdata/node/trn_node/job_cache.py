"""The properties of this node that a job's compile cache depends on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainium_wire.cache_place import STACKS, version_in
from trainium_wire.cache_place import direct_url as direct_url_of

from . import files, job_user
from .self_test import framework_python

FOLDER = "var/cache/trn/jobs"
"""Folder of the caches. It is kept between jobs, so that later jobs download only new entries."""


def framework_environment(stack: str | None) -> tuple[str, Path] | None:
    """A stack and its virtual environment: the given stack, or that of the node. None if the node has none."""
    plan = files.plan()
    frameworks = {name: own for name, own in plan.get("frameworks", {}).items() if stack in (None, own)}
    framework = framework_python({**plan, "frameworks": frameworks})
    return (framework[0], framework[1].parent.parent) if framework else None


def compile_cache(stack: str | None) -> dict[str, Any] | None:
    """The part of a job's launch file for the given stack, or for that of the node; None without a compile cache."""
    plan, url = files.plan(), files.locations().get("TRN_CACHE_URL")
    framework = framework_environment(stack)
    if not url or not framework or framework[0] not in STACKS:
        return None
    return {
        "url": url,
        "folder": str(files.path(FOLDER)),
        "stack": framework[0],
        "venv": str(framework[1]),
        "instance_type": plan["instance_type"],
        "lnc": plan["logical_neuroncore_config"] or 1,
        "read_only": files.locations().get("TRN_CACHE_ACCESS") == "read",
    }


def direct_url() -> str:
    """The URL where PyTorch/XLA stores compiled graphs outside of jobs.

    Raises:
        ValueError: PyTorch/XLA is not installed, the version of its compiler is unknown, or the cache is read-only.
    """
    cache = compile_cache("xla")
    if cache is None:
        raise ValueError("this node has no PyTorch/XLA")
    if cache["read_only"]:
        raise ValueError("the compile cache is read-only, but PyTorch/XLA writes to it outside of jobs")
    compiler = version_in(Path(cache["venv"]), "neuronx_cc")
    return direct_url_of(cache["url"], compiler=compiler, instance_type=cache["instance_type"], lnc=cache["lnc"])


def make_folder() -> None:
    """Create FOLDER for the user of jobs. Raises OSError."""
    folder = files.path(FOLDER)
    folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink():
        raise OSError(f"{folder} is a link: remove it")
    job_user.give_to_job_user(folder)
