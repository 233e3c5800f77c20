"""make pins: renew what the files of direct pins leave open.

Each requirements file names its tools exactly. What those need in turn is resolved here, by pip
and without installing it, into a file of constraints that the requirements file includes.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = {
    "requirements.txt": "requirements/pins/dev.txt",
    "requirements/checkov.txt": "requirements/pins/checkov.txt",
    "requirements/bench.txt": "requirements/pins/bench.txt",
    "requirements/docs.txt": "requirements/pins/docs.txt",
    "requirements/torch.txt": "requirements/pins/torch.txt",
    "requirements/lowest.txt": "requirements/pins/lowest.txt",
}


def normalized(name: str) -> str:
    """The form in which PyPI compares names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def resolve(requirements: str) -> dict[str, str]:
    """Name and version of everything that pip would install for the lines of a requirements file."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(requirements)
        file.flush()
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--report", "-", "--requirement", file.name]
        report = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
    packages = [item["metadata"] for item in json.loads(report)["install"] if not item["is_direct"]]
    return {normalized(package["name"]): package["version"] for package in packages}


def renew(source: str, target: str) -> int:
    """Write the constraints of one requirements file; returns how many."""
    lines = (ROOT / source).read_text().splitlines()
    free = "\n".join(line for line in lines if not line.startswith("-c "))
    direct = {normalized(match[1]) for line in lines if (match := re.match(r"([\w.-]+)(\[.*])?==", line))}
    open_pins = sorted(set(resolve(free).items()), key=lambda pin: pin[0])
    pins = [f"{name}=={version}" for name, version in open_pins if name not in direct]
    header = f"# What {source} leaves open. Written by `make pins`."
    (ROOT / target).write_text("\n".join([header, *pins]) + "\n")
    return len(pins)


def main() -> None:
    started = time.monotonic()
    for source, target in CONSTRAINTS.items():
        print(f"  {target} ... ", end="", flush=True)
        print(f"{renew(source, target)} packages")
    subprocess.run(["npm", "install", "--package-lock-only", "--loglevel=error"], check=True, cwd=ROOT)
    renewed = ", ".join([*CONSTRAINTS.values(), "package-lock.json"])
    print(f"make pins: {renewed} renewed in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
