"""Mistakes in the files that users write for a pilot: all of them at once, and one exit code."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_core.evidence.toml_file import TomlFileError


@contextmanager
def mistakes_listed(file: Path) -> Generator[None]:
    """Report the mistakes that are found while a file is read.

    Raises:
        CliError: The file has mistakes.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise CliError(f"{file} is not UTF-8.", ExitCode.BAD_INPUT) from error
    except TomlFileError as error:
        raise CliError(error.listed(file), ExitCode.BAD_INPUT) from error
