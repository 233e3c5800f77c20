"""Reports all mistakes in a user's TOML file in one message, with exit code 2."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from trainium_cli.exit_codes import CliError, ExitCode
from trainium_core.evidence.toml_file import TomlFileError


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
