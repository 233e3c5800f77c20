"""A node with a compile cache of fake compilers, and the keys with which it reaches an S3 endpoint."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.userdata import fake_compiler
from trainium_core.compile_cache.place import Place, place_of
from trn_cache.cache import Cache
from trn_cache.entries import Entries
from trn_cache.layouts import LAYOUTS
from trn_node.imds import Credentials, Imds

URL = "s3://compiled/neuron-compile-cache"


def place(stack: str = "xla", **changes: Any) -> Place:
    given = {"compiler": fake_compiler.COMPILER, "instance_type": "trn2.48xlarge", "lnc": 2, "world_size": 8}
    return place_of(stack=stack, **{**given, **changes})


class Keys(Imds):
    """Credentials that are known already."""

    def __init__(self, credentials: Credentials) -> None:
        super().__init__(retries=0)
        self._credentials = credentials

    def credentials(self) -> Credentials:
        return self._credentials


class CacheNode:
    """`folder` is what its disk holds; `begin` is what is done before a job's command."""

    def __init__(self, folder: Path, s3: Entries, where: Place | None = None, url: str = URL, **more: Any) -> None:
        self.place = where or place()
        self.folder, self.s3, self._url, self._more = folder, s3, url, more
        self.said: list[str] = []
        self.begin(fill=False)

    def begin(self, *, fill: bool = True) -> None:
        layout = LAYOUTS[self.place.stack]
        folder = self.folder / self.place.path
        self.cache = Cache(self.s3, self._url, self.place, folder, layout, say=self.said.append, **self._more)
        if fill:
            self.cache.prepare()
            self.cache.fill()

    def workers(self, count: int, modules: Iterable[str], **environment: str) -> list[int | str]:
        """Run so many fake workers at once: their exit codes, then the modules that were compiled."""
        command = [sys.executable, fake_compiler.__file__, self.place.stack, str(self.cache.root), *modules]
        started = [
            subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)
            for _ in range(count)
        ]
        out = [process.communicate(timeout=60)[0] for process in started]
        compiled = [line.split()[1] for text in out for line in text.splitlines()]
        return [*(process.returncode for process in started), *sorted(compiled)]

    def compile(self, *modules: str) -> None:
        for module in modules:
            fake_compiler.compile_into(self.place.stack, self.cache.root, module)

    def has(self, module: str) -> bool:
        return fake_compiler.is_there(self.place.stack, self.cache.root, module)

    def result(self, module: str) -> bytes:
        return fake_compiler.use(self.place.stack, self.cache.root, module)


def killed_at(step: int, folder: Path, work: Callable[[], object]) -> bool:
    """Do it in a process that SIGKILL ends at this change of the folder, or request. False: it came through."""
    child = os.fork()
    if child == 0:
        left = step

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            changes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "http.client.send")
            writes = event == "open" and str(folder) in str(arguments[0]) and "w" in str(arguments[1])
            if changes or writes:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
