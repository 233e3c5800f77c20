"""The time of `trn up --down`, and of the commands that do the same one by one."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tools.demo.private_aws import PrivateAws

ROUNDS = 3
_JOB = 'name = "fit"\ncommand = "echo weights > model.pt"\nsource = "."\n'
_NEW = ("--type", "trn1.2xlarge", "--ends", "8h")
_STEPS = {
    "init": ("init", ".", *_NEW, "--yes"),
    "deploy": ("deploy", "--yes"),
    "run": ("run", "job.toml", "--outputs", "results"),
    "destroy": ("destroy", "--yes", "--grace", "0"),
    "audit": ("audit",),
}


def up_speed(aws: PrivateAws) -> Iterator[tuple[str, str]]:
    """Alternately run the one command and the others, each in a new folder. The account is bootstrapped."""
    totals, steps = list[float](), list[dict[str, float]]()
    for number in range(ROUNDS):
        totals.append(_seconds(_folder(aws, f"up-{number}"), "up", "job.toml", "--down", "--yes", *_NEW))
        folder = _folder(aws, f"steps-{number}")
        steps.append({name: _seconds(folder, *words) for name, words in _STEPS.items()})
    whole, parts = median(totals), median(sum(each.values()) for each in steps)
    yield "trn up --down, the same commands one by one", f"{whole:.1f} s, {parts:.1f} s: {whole / parts:.2f} times"
    each = ", ".join(f"{name} {median(step[name] for step in steps):.1f} s" for name in _STEPS)
    yield "the commands", f"{each}; medians of {ROUNDS}"


def _folder(aws: PrivateAws, name: str) -> Path:
    folder = aws.folder / name
    folder.mkdir()
    (folder / "job.toml").write_text(_JOB)
    return folder


def _seconds(folder: Path, *words: str) -> float:
    """Run `trn`. Returns its duration; raises CalledProcessError if it fails."""
    started = time.monotonic()
    command = [sys.executable, "-m", "trainium_cli", *words]
    subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return time.monotonic() - started
