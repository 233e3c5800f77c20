"""The folders of the lab, and the names of what it makes on this machine."""

from pathlib import Path

PREFIX = "trnlab-"
"""First part of the name of every control group and interface that the lab makes."""

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / ".lab"
"""Ignored by git. Holds the base root file system and, below `run`, the files of one run."""

RUN = FOLDER / "run"
