"""The log of the functions: one JSON object per line."""

from typing import Any

from trainium_wire.logs import JsonFormatter, file_logger

_LOGGER = file_logger("trainium_runtime", JsonFormatter())


def log(message: str = "", **fields: Any) -> None:
    """Log a sentence, and values by name."""
    _LOGGER.info(message, extra={"fields": fields})
