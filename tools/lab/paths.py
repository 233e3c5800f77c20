"""The folders of the lab, and the prefix of the names that it uses on this machine."""

import os
from pathlib import Path

PREFIX = "trnlab-"
"""Prefix of the names of the lab's nodes, and of its control groups and network namespaces."""

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / ".lab"
"""Ignored by git. Holds the base root file systems and, below RUNS, the files of the last run."""

RUNS = FOLDER / "run"
PART = "TRNLAB_PART"
"""Environment variable with the part of the run that a process belongs to."""

RUN = RUNS / os.environ.get(PART, "all")
"""The files of this part of the run. Each part has its own namespaces, embedded AWS and nodes."""

SHOWN = RUN / "shown"
"""The text of this part in the closing sentence of `make lab`, `make lab-bench` and `make pilot`."""
