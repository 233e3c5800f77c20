"""The options of commands that run a user's script."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from trainium_cli.invocation import Command
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.request import JobRequest, job_request, read_job_file
from trainium_core.jobs.source_package import SourcePackage, pack_directory, pack_source

JOB_FILE = ".toml"
"""The suffix of job files."""
_SHOWN_KEYS = {
    "script": "SCRIPT",
    "arguments": "ARGUMENTS",
    "environment": "--env",
    "secrets": "--secret",
    "inputs": "--input",
    "retry_on_exit_codes": "--retry-on-exit-code",
}


def _pairs(_ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Mapping[str, str] | None:
    split = [text.partition("=") for text in values]
    for text, (name, separator, _) in zip(values, split, strict=True):
        if not separator or not name:
            got = "" if param.name == "secrets" else f", got {text!r}"  # It may be the secret value itself.
            raise click.BadParameter(f"expected {param.metavar}{got}")
    return {name: value for name, _, value in split} or None


def work_options(*, source_default: str) -> Callable[[Command], Command]:
    """The options of `trn run` for the source, name, nodes, environment and data of a job.

    Args:
        source_default: The default of --source, for the help.
    """
    pairs: dict[str, Any] = {"multiple": True, "callback": _pairs}
    options = (
        click.option(
            "--source",
            metavar="DIRECTORY",
            help="Directory that is packed, without files that its .trnignore or .gitignore names, and that every node "
            f"unpacks. Default: {source_default}.",
        ),
        click.option("--name", metavar="NAME", help="Prefix of the job ID. Default: the script's name."),
        click.option("--nodes", metavar="NUMBER", help="Number of nodes. Default: all of the cluster."),
        click.option(
            "--setup",
            metavar="COMMAND",
            help="Bash command that each node runs in the unpacked source before the script or command.",
        ),
        click.option(
            "--env",
            "environment",
            metavar="NAME=VALUE",
            help="Environment variable of the job. Stored in S3: no secrets. Can be repeated.",
            **pairs,
        ),
        click.option(
            "--secret",
            "secrets",
            metavar="NAME=ARN",
            help="Environment variable whose value the nodes read from a secret of trn:job_secrets. Can be repeated.",
            **pairs,
        ),
        click.option(
            "--input",
            "inputs",
            metavar="NAME=PLACE",
            help="Data that each node downloads first: an S3 URL in trn:job_inputs, or a local path. Can be repeated.",
            **pairs,
        ),
    )

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def read_request(
    script: Path, arguments: tuple[str, ...], options: Mapping[str, Any]
) -> tuple[JobRequest, Mapping[str, Any], Mapping[str, str]]:
    """The request, its unparsed values by key, and the name of each key for messages. Raises JobError."""
    of_options = {key: value for key, value in options.items() if value not in (None, ())}
    if arguments:
        of_options["arguments"] = arguments
    shown = {key: f"--{key.replace('_', '-')}" for key in options} | _SHOWN_KEYS
    of_file: dict[str, Any] = {"script": str(script)}
    if script.suffix == JOB_FILE:
        of_file = read_job_file(script)
        # A problem in the file is shown with the file's key.
        shown = {key: shown[key] for key in of_options}
    values = of_file | of_options
    return job_request(values, shown=shown), values, shown


def packed_source(request: JobRequest) -> SourcePackage:
    """The packed source of a request. Raises JobError."""
    source, outputs = (Path(folder) if folder else None for folder in (request.source, request.outputs))
    return pack_directory(source, outputs) if request.script is None else pack_source(request.script, source, outputs)


@contextmanager
def keys_as_given(shown: Mapping[str, str]) -> Generator[None]:
    """Problems of a job that are raised in this block name options instead of keys."""
    try:
        yield
    except JobError as error:
        problems = [replace(problem, key=shown.get(problem.key, problem.key)) for problem in error.problems]
        raise JobError(problems) from error
