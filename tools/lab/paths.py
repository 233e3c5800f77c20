"""Where the lab keeps its files, and how everything is called that it makes on this machine."""

from pathlib import Path

PREFIX = "trnlab-"
"""First part of the name of every control group and interface that the lab makes."""

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / ".lab"
"""Ignored by git. Holds the base root file system, and below `run` what one run makes."""

RUN = FOLDER / "run"
