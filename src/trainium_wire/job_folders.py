"""The folders of a job on each node, and their variables, which arguments and environment variables may contain."""

from __future__ import annotations

import re
import shlex

FOLDER_VARIABLES = {"checkpoints": "TRN_CHECKPOINT_DIR", "outputs": "TRN_OUTPUT_DIR", "inputs": "TRN_INPUT_DIR"}
"""The folders beside the working directory of a job, so `../outputs` is the same folder as `$TRN_OUTPUT_DIR`."""

_NAMES = "|".join(FOLDER_VARIABLES.values())
_VARIABLE = re.compile(rf"\$(?:\{{(?:{_NAMES})\}}|(?:{_NAMES})(?![A-Za-z0-9_]))")


def quoted(text: str) -> str:
    """Quote a text for bash, which expands only the variables of the folders."""
    words, end = list[str](), 0
    for found in _VARIABLE.finditer(text):
        words += [shlex.quote(text[end : found.start()])] if found.start() > end else []
        words.append(f'"{found[0]}"')
        end = found.end()
    return "".join([*words, shlex.quote(text[end:]) if text[end:] or not words else ""])
