"""Workers that compile modules into a cache as the software stacks do: python3 fake_compiler.py STACK FOLDER MODULE ...

They use the documented layouts and locks; the compiled code is text. FAIL names a module at which a worker fails as the
compiler does. A worker prints a line for each module that it compiled.
"""

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

COMPILER = "2.21.18209.0+043b1bf7"
TIMEOUT_SECONDS = 120
SECONDS = float(os.environ.get("COMPILE_SECONDS", "0"))


def name_of(stack: str, module: str) -> str:
    """The entry name that the stack gives a module."""
    digest = hashlib.md5(module.encode()).hexdigest()
    if stack == "xla":
        return f"neuronxcc-{COMPILER}/MODULE_{int(digest[:15], 16)}+d7517139"
    if stack == "jax":
        return f"jit_{module}-{digest}-cache"
    return f"{digest[:2]}/{digest[2:4]}/{digest}.neff"


def result_of(module: str) -> bytes:
    return f"NEFF of {module} ".encode() * 40


def compile_into(stack: str, folder: Path, module: str) -> None:
    """Compile one module completely, in SECONDS."""
    for step in steps(stack, folder, module):
        step()


def steps(stack: str, folder: Path, module: str) -> Iterable[Callable[[], object]]:
    """The steps of a compilation; a compiler may be killed between any two."""
    path, content = folder / name_of(stack, module), result_of(module)
    if stack == "xla":
        yield lambda: path.mkdir(parents=True, exist_ok=True)
        yield lambda: (path / "model.hlo_module.pb").write_bytes(module.encode())
        yield lambda: (path / "compile_flags.json").write_text("[]")
        yield lambda: time.sleep(SECONDS)
        yield lambda: (path / "model.neff").write_bytes(content[: len(content) // 2])
        yield lambda: (path / "model.neff").write_bytes(content)
        yield lambda: (path / "model.done").write_text("\n")
    else:
        new = path.with_name(f"{path.name}.tmp{os.getpid()}")
        yield lambda: path.parent.mkdir(parents=True, exist_ok=True)
        yield lambda: time.sleep(SECONDS)
        yield lambda: new.write_bytes(content[: len(content) // 2])
        yield lambda: new.write_bytes(content)
        yield lambda: new.replace(path)


def is_there(stack: str, folder: Path, module: str) -> bool:
    path = folder / name_of(stack, module)
    return (path / "model.done").exists() if stack == "xla" else path.exists()


def use(stack: str, folder: Path, module: str) -> bytes:
    path = folder / name_of(stack, module)
    return (path / "model.neff" if stack == "xla" else path).read_bytes()


def fail(stack: str, folder: Path, module: str) -> None:
    path = folder / name_of(stack, module)
    if stack == "xla":
        path.mkdir(parents=True, exist_ok=True)
        (path / "model.hlo_module.pb").write_bytes(module.encode())
        (path / "model.log").write_text("[F137] neuronx-cc was forcibly killed\n\n")


def lock_of(stack: str, folder: Path, module: str) -> Path:
    path = folder / name_of(stack, module)
    return path / "model.hlo_module.pb.lock" if stack == "xla" else path.with_name(f"{path.name}.lock")


def work(stack: str, folder: Path, module: str) -> None:
    lock = lock_of(stack, folder, module)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not is_there(stack, folder, module):
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            if time.monotonic() > deadline:
                sys.exit("Another process must be compiling")
            time.sleep(0.002)
            continue
        if not is_there(stack, folder, module):
            if module == os.environ.get("FAIL"):
                fail(stack, folder, module)
                lock.unlink()
                sys.exit(70)
            compile_into(stack, folder, module)
            print(f"compiled {module}", flush=True)
        lock.unlink()
    assert use(stack, folder, module) == result_of(module)


if __name__ == "__main__":
    for each in sys.argv[3:]:
        work(sys.argv[1], Path(sys.argv[2]), each)
