"""A stand-in for kubectl that records its calls."""

import json
from pathlib import Path
from typing import Any

import pytest

ACCOUNT = "123456789012"
"""The account of moto."""
CONFIG = {
    "current-context": "other",
    "contexts": [
        {"name": "other", "context": {"cluster": f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster/dev"}},
        {"name": "mine", "context": {"cluster": f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster/prod"}},
    ],
}
RECORDER = """#!/bin/bash
echo "$*" >>"$KUBECTL/calls"
case "$1" in
config) cat "$KUBECTL/config" ;;
apply) objects=$(cat); echo "$objects" >>"$KUBECTL/applied"
  if [[ $objects == *"$(cat "$KUBECTL/refused")"* ]]; then cat "$KUBECTL/refusal" >&2; exit 1; fi ;;
get) if [[ -e $KUBECTL/absent/$3 ]]; then echo 'Error from server (NotFound): no' >&2; exit 1; fi
  if [[ -e $KUBECTL/error ]]; then cat "$KUBECTL/error" >&2; exit 1; fi
  if [[ $2 == workloads* ]]; then cat "$KUBECTL/workloads"; else cat "$KUBECTL/items"; fi ;;
esac
"""


class Recorder:
    """The stand-in for kubectl: its files, and what it was called with."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "absent").mkdir(parents=True)
        (folder / "config").write_text(json.dumps(CONFIG))
        (folder / "kubectl").write_text(RECORDER)
        (folder / "kubectl").chmod(0o755)
        self.items()
        self.refuse("nothing", "")

    def items(self, *items: Any) -> None:
        self.write("items", json.dumps({"items": items}))

    def write(self, name: str, text: str = "") -> None:
        (self._folder / name).write_text(text)

    @property
    def calls(self) -> list[str]:
        calls = self._folder / "calls"
        return calls.read_text().splitlines() if calls.exists() else []

    def refuse(self, kind: str, message: str) -> None:
        """Let kubectl fail with a message when it applies an object of this kind."""
        self.write("refused", f'"kind": "{kind}"')
        self.write("refusal", message)

    @property
    def applied(self) -> list[Any]:
        lines = (self._folder / "applied").read_text().splitlines()
        return [item for line in lines for item in json.loads(line)["items"]]


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Make a stand-in the only kubectl in the PATH."""
    monkeypatch.setenv("KUBECTL", str(folder))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return Recorder(folder)
