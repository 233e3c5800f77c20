"""Verdicts of linters, kept for later runs: each text is looked at once by each version of a tool."""

import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Verdicts:
    """Verdicts as JSON, in a folder that may be deleted at any time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, judge: Callable[[], Any], *given: str) -> Any:
        """What `judge` returns, or returned in an earlier run.

        given: all that decides it: the tool with its version, its options, and what it looks at.
        """
        file = self._folder / hashlib.sha256(json.dumps(given).encode()).hexdigest()
        try:
            return json.loads(file.read_text())
        except (OSError, ValueError):
            verdict = judge()
        with tempfile.NamedTemporaryFile("w", dir=self._folder, delete=False) as whole:
            json.dump(verdict, whole)
        Path(whole.name).replace(file)  # another worker may do the same
        return verdict
