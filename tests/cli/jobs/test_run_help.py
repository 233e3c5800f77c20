"""The help of `trn run`."""

import re

import click

from tests.cli.running import run
from trainium_cli.jobs import run_command


def test_help_of_run_shows_every_option_and_those_of_one_engine_last() -> None:
    shown, command = run("run", "--help").stdout, run_command.run
    options = [max(each.opts, key=len) for each in command.params if isinstance(each, click.Option)]
    assert [option for option in options if not re.search(rf"^  .*{option}\b", shown, re.MULTILINE)] == []
    assert (
        shown.index("What runs:")
        < shown.index("--yes")
        < shown.index("Slurm, SageMaker and EKS:")
        < shown.index("--queue")
    )
