"""The argument for a user's TOML file, and all mistakes in it as one message, with exit code 2."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_core.evidence.toml_file import TomlFileError


class _TomlFile(click.Path):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not Path(value).exists():
            self.fail(f"{value} does not exist: `trn init --evidence` writes this file for a plan", param, ctx)
        return super().convert(value, param, ctx)


def file_argument(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The argument `file` of a command, with the name that `trn init --evidence` gives the file as its default."""
    return click.argument("file", metavar="FILE.toml", default=default, type=_TomlFile(dir_okay=False, path_type=Path))


@contextmanager
def mistakes_listed(file: Path) -> Generator[None]:
    """Turn the errors of reading a file into one message.

    Raises:
        CliError: The file is not UTF-8, or has mistakes.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise CliError(f"{file} is not UTF-8.", ExitCode.BAD_INPUT) from error
    except TomlFileError as error:
        raise CliError(error.listed(file), ExitCode.BAD_INPUT) from error
