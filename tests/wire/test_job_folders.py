"""Texts of users that name the folders of a job by their variables."""

import subprocess

import pytest

from trainium_wire.job_folders import FOLDER_VARIABLES, quoted

OTHER = "$HOME `id` $(id) $TRN_OUTPUT_DIRS ${TRN_OUTPUT_DIR:-x} '\""


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("--out=$TRN_OUTPUT_DIR", "--out=/the job's/outputs"),
        ("${TRN_INPUT_DIR}/a b/$TRN_CHECKPOINT_DIR", "/the job's/inputs/a b//the job's/checkpoints"),
        (OTHER, OTHER),
        ("", ""),
        ("two\nlines", "two\nlines"),
    ],
)
def test_bash_expands_only_the_variables_of_folders(text: str, expanded: str) -> None:
    environment = {variable: f"/the job's/{folder}" for folder, variable in FOLDER_VARIABLES.items()}
    command = ["bash", "-c", f"printf '%s' {quoted(text)}"]
    assert subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout == expanded
