"""The folders of the lab, and the names of what it makes on this machine."""

import os
from pathlib import Path

PREFIX = "trnlab-"
"""First part of the name of every control group and interface that the lab makes."""

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / ".lab"
"""Ignored by git. Holds the base root file systems and, below RUNS, the files of the last run."""

RUNS = FOLDER / "run"
PART = "TRNLAB_PART"
"""The environment variable with the name of the part of a run whose processes these are."""

RUN = RUNS / os.environ.get(PART, "all")
"""The files of this part of the run: it has its own namespaces, embedded AWS and nodes."""

SHOWN = RUN / "shown"
"""The text of this part in the closing sentence of `make lab`, `make lab-bench` and `make pilot`."""
