"""Compares the output of a command in a page with its real output."""

import re

from tests.constructs.synth import ROOT

_PAGES = ROOT / "docs"
_DIFFERING = {
    r"http://127\.0\.0\.1:\d+": "ENDPOINT",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z": "TIME",
    r"\b\d\d-\d\d \d\d:\d\d:\d\dZ": "TIME",
    r"\b[0-9a-f]{32}\b": "ID",
    r"\bi-[0-9a-f]{17}\b": "INSTANCE",
    r"\b10\.42\.\d+\.\d+": "ADDRESS",
    r"\b[\d.]+ h from now": "HOURS from now",
    r"─+": "─",
    r"Send this request to AWS\? \[y/N\]: y": "",
}


def words(text: str) -> str:
    """The words of a text, with placeholders for what differs between two runs, such as IDs and times."""
    for pattern, name in _DIFFERING.items():
        text = re.sub(pattern, name, text)
    return " ".join(text.split())


def shown_in(page: str, command: str) -> str:
    """The text after the command in a code block; the part after `[...]` if that marks an omission."""
    (output,) = re.findall(rf"^\$ {command}\n((?:(?!\$ |```).*\n)*)", (_PAGES / page).read_text(), re.MULTILINE)
    return words(output.rpartition("[...]\n")[2])
