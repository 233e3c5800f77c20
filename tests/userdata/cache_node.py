"""A node with a compile cache of fake compilers, and its credentials for an S3 endpoint."""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.userdata import fake_compiler
from trainium_wire.cache_place import Place, cache_entry_place
from trn_cache.cache import Cache
from trn_cache.entries import Entries
from trn_cache.layouts import LAYOUTS
from trn_node.imds import Credentials, Imds

URL = "s3://compiled/neuron-compile-cache"


def place(stack: str = "xla", **changes: Any) -> Place:
    defaults = {"compiler": fake_compiler.COMPILER, "instance_type": "trn2.48xlarge", "lnc": 2, "world_size": 8}
    return cache_entry_place(stack=stack, **{**defaults, **changes})


class Keys(Imds):
    """Fixed credentials."""

    def __init__(self, credentials: Credentials) -> None:
        super().__init__(retries=0)
        self._credentials = credentials

    def credentials(self) -> Credentials:
        return self._credentials


class CacheNode:
    """A node with a folder as its disk. `begin` does what a node does before a job's command.

    Attributes:
        boot: ID of the boot; None for the current one.
    """

    def __init__(self, folder: Path, s3: Entries, where: Place | None = None, url: str = URL, **more: Any) -> None:
        self.place = where or place()
        self.folder, self.s3, self._url, self._more = folder, s3, url, more
        self.boot: str | None = None
        self.log: list[str] = []
        self.begin(fill=False)

    def begin(self, *, fill: bool = True) -> None:
        layout = LAYOUTS[self.place.stack]
        folder = self.folder / self.place.path
        self.cache = Cache(
            self.s3, self._url, self.place, folder, layout, say=self.log.append, boot=self.boot, **self._more
        )
        if fill:
            self.cache.prepare()
            self.cache.fill()

    def workers(self, count: int, modules: Iterable[str], **environment: str) -> list[int | str]:
        """Run this number of fake workers concurrently. Returns their exit codes, then the compiled modules."""
        started = self.start_workers(count, [*modules], **environment)
        out = [process.communicate(timeout=180)[0] for process in started]
        compiled = [line.split()[1] for text in out for line in text.splitlines()]
        return [*(process.returncode for process in started), *sorted(compiled)]

    def start_workers(self, count: int, modules: Sequence[str], **environment: str) -> list[subprocess.Popen[str]]:
        """Start fake workers. Half of them compile the modules in order, as the ranks of a job do; each of the others
        starts at a different module.
        """
        command = [sys.executable, "-IS", fake_compiler.__file__, self.place.stack, str(self.cache.root)]
        starts = [number * len(modules) // count * (number % 2) for number in range(count)]
        return [
            subprocess.Popen(
                [*command, *modules[start:], *modules[:start]],
                env={**os.environ, **environment},
                stdout=subprocess.PIPE,
                text=True,
            )
            for start in starts
        ]

    def compile(self, *modules: str) -> None:
        for module in modules:
            fake_compiler.compile_into(self.place.stack, self.cache.root, module)

    def has(self, module: str) -> bool:
        return fake_compiler.is_there(self.place.stack, self.cache.root, module)

    def result(self, module: str) -> bytes:
        return fake_compiler.use(self.place.stack, self.cache.root, module)
