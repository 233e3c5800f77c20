"""The compile caches of a job on one node, filled before it, and written back during it and at its end."""

from __future__ import annotations

import base64
import os
import re
import shutil
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainium_wire.cache_place import Place, cache_entry_place, parse_place, version_in
from trn_cache.cache import Cache
from trn_cache.entries import Entries
from trn_cache.layouts import LAYOUTS
from trn_cache.renewal import Renewal
from trn_cache.use import CacheUsage
from trn_node import files
from trn_node.imds import Imds

from .launch import Launch

SECONDS, SECONDS_OTHERS = 30.0, 90.0
"""Interval between searches for new entries on node 0, and on the others, whose entries are mostly the same."""
RETRIES = 3
"""Retries of each request to S3, with pauses of seven seconds in total. Then the job starts without the other entries:
the first failed download ends all of them."""
LNC_VARIABLES = ("NEURON_LOGICAL_NC_CONFIG", "NEURON_RT_VIRTUAL_CORE_SIZE")
FLAGS_VARIABLE = "NEURON_CC_FLAGS"
OWN_CACHE = re.compile(r"(^|\s)--(cache_dir|no_cache)\b")
"""Flags that override NEURON_COMPILE_CACHE_URL (AWS Neuron documentation, neuron-caching.rst)."""
PLAN_VARIABLES = "etc/trn/environment.base64"
LEAST_FREE = 0.2
"""Before a job downloads its entries, places that it does not use are deleted until this fraction of the disk is
free."""


class CompileCaches:
    """The compile caches of an attempt. A job that cannot use one, for example without S3, continues with a warning."""

    def __init__(self, launch: Launch, say: Callable[[str], None], imds: Imds) -> None:
        self._launch, self._say, self._imds = launch, say, imds
        self._settings: Mapping[str, Any] = launch.compile_cache or {}
        self._caches: list[tuple[Cache, CacheUsage]] = []
        self._renewals: list[tuple[Cache, Renewal]] = []
        self._warnings: list[str] = []
        self._lock, self._storing = threading.Lock(), threading.Lock()

    @property
    def seconds(self) -> float:
        return SECONDS_OTHERS if self._launch.rank else SECONDS

    @property
    def is_wanted(self) -> bool:
        return bool(self._settings)

    def prepare(
        self, environment: Mapping[str, str], venv: str | None, is_cancelled: Callable[[], bool]
    ) -> dict[str, str]:
        """Fill the caches. Those whose folder or flags the environment sets are left to the job.

        Args:
            environment: Variables of the command.
            venv: Virtual environment of the command. Its packages take precedence over those of the image, and
                VIRTUAL_ENV in the environment replaces both.
            is_cancelled: Whether to stop downloading.

        Returns:
            The variables that make the stacks use the caches.
        """
        variables: dict[str, str] = {}
        if not self._settings:
            return variables
        environment = {**plan_variables(), **environment}
        named = environment.get("VIRTUAL_ENV")
        venvs = [Path(named)] if named else [Path(each) for each in (venv, self._settings["venv"]) if each]
        stacks = [each for each in _stacks(self._settings["stack"], venvs) if LAYOUTS[each].variable not in environment]
        places: dict[str, Place] = {}
        for stack in stacks:
            try:
                places[stack] = self._place(stack, venvs, environment)
            except ValueError as error:
                self._warn(f"no compile cache for {stack}: {error}")
        if "xla" in places and OWN_CACHE.search(environment.get(FLAGS_VARIABLE, "")):
            self._warn(f"no compile cache for xla: {FLAGS_VARIABLE} contains --cache_dir or --no_cache")
            del places["xla"]
        self._make_room(places.values())
        for stack, place in places.items():
            try:
                variables.update(self._fill(stack, place, is_cancelled))
            except OSError as error:
                self._warn(f"no compile cache for {stack}: {error}")
        return variables

    def store(self, *, settled: bool = False) -> None:
        """Store new entries, and on node 0 renew old ones, unless the cache is read-only.

        Args:
            settled: Whether the processes that wrote the entries have ended normally.
        """
        if self._settings.get("read_only"):
            return
        with self._storing:
            for cache, _ in self._caches:
                cache.store(settled=settled)
            for cache, renewal in self._renewals:
                try:
                    renewal.step()
                except OSError as error:
                    cache.report.fail("not renewed in S3", error)

    def as_record(self, *, has_first_step: bool) -> list[dict[str, Any]]:
        """The usage of each cache, for the job's record."""
        with self._lock:
            for _, use in self._caches:
                use.has_first_step = has_first_step
            records = [use.as_record(explain=not self._launch.rank) for _, use in self._caches]
        return records + ([{"stack": self._settings["stack"], "warnings": self._warnings}] if self._warnings else [])

    def _place(self, stack: str, venvs: Sequence[Path], environment: Mapping[str, str]) -> Place:
        settings = self._settings
        lnc = next((environment[name] for name in LNC_VARIABLES if environment.get(name)), settings["lnc"])
        if not str(lnc).strip().isdecimal():
            raise ValueError(f"{' or '.join(LNC_VARIABLES)} is {lnc!r}, not a number")
        return cache_entry_place(
            compiler=_version(venvs, "neuronx_cc"),
            instance_type=settings["instance_type"],
            lnc=int(lnc),
            stack=stack,
            world_size=self._launch.world_size,
            compiler_flags=environment.get(FLAGS_VARIABLE, ""),
        )

    def _make_room(self, places: Iterable[Place]) -> None:
        folder = Path(self._settings["folder"])
        try:
            for removed in make_room(folder, [folder / place.path for place in places]):
                full = f"less than {LEAST_FREE:.0%} of the disk was free"
                self._say(f"compile cache: {full}: {removed} was deleted; entries in S3 are kept")
        except OSError as error:
            self._warn(f"no disk space could be freed: {error}")

    def _fill(self, stack: str, place: Place, is_cancelled: Callable[[], bool]) -> Mapping[str, str]:
        settings, launch = self._settings, self._launch
        folder = Path(settings["folder"]) / place.path
        s3 = Entries(self._imds, retries=RETRIES)
        cache = Cache(s3, settings["url"], place, folder, LAYOUTS[stack], urgent=not launch.rank, say=self._say)
        cache.prepare()
        cache.fill(is_cancelled)
        use = CacheUsage(cache, s3, settings["url"])
        with self._lock:
            self._caches.append((cache, use))
            if not launch.rank:
                self._renewals.append((cache, Renewal(cache, s3, records_reads=use.records_reads)))
        read = cache.report.fetched
        self._say(f"compile cache: {len(cache.at_start)} entries of {place.path}, {read} of them from S3 just now")
        return LAYOUTS[stack].environment(folder)

    def _warn(self, text: str) -> None:
        self._warnings.append(text)
        self._say(f"compile cache: warning: {text}")


def make_room(folder: Path, used: Collection[Path]) -> list[str]:
    """Record which places in a folder are used, and delete others while less than LEAST_FREE of the disk is free.

    The longest unused place is deleted first. Entries that never reached S3 are deleted with their place.

    Returns:
        The paths of the deleted places.

    Raises:
        OSError: A folder cannot be created, read or deleted.
    """
    for place in used:
        place.mkdir(parents=True, exist_ok=True)
        os.utime(place)
    removed: list[str] = []
    others = [path for path in folder.glob("*/*/*/*") if parse_place(str(path.relative_to(folder)))]
    for place in sorted({*others} - {*used}, key=lambda path: path.stat().st_mtime):
        disk = shutil.disk_usage(folder)
        if disk.free >= disk.total * LEAST_FREE:
            break
        shutil.rmtree(place)
        removed.append(str(place.relative_to(folder)))
    return removed


def plan_variables() -> dict[str, str]:
    """The variables from the plan, which login shells on the node set."""
    pairs = (line.partition("=") for line in files.read(PLAN_VARIABLES).splitlines())
    return {name: base64.b64decode(value).decode(errors="replace") for name, _, value in pairs}


def _version(venvs: Iterable[Path], package: str) -> str:
    return next(filter(None, (version_in(venv, package) for venv in venvs)), "")


def _stacks(stack: str, venvs: Sequence[Path]) -> list[str]:
    """The stacks whose caches a job uses. JAX compiles with libneuronxla, and has another cache on top of it."""
    stacks = ["xla", "jax"] if stack == "jax" else [stack]
    return [*stacks, "vllm"] if _version(venvs, "vllm") or _version(venvs, "vllm_neuron") else stacks
