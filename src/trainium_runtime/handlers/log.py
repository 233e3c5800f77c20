"""What the functions write to their log groups: one JSON object a line."""

from typing import Any

from trainium_wire.logs import JsonFormatter, logger_of

_LOGGER = logger_of("trainium_runtime", JsonFormatter())


def log(message: str = "", **fields: Any) -> None:
    """Write a sentence, and values by their names."""
    _LOGGER.info(message, extra={"fields": fields})
