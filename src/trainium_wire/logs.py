"""Logging: one JSON object per line in functions, plain lines on nodes, for people who read the journal."""

from __future__ import annotations

import json
import logging
import sys


class JsonFormatter(logging.Formatter):
    """One JSON object: the level, the message unless it is empty, and the values of `extra={"fields": …}`."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        shown = {"message": message} if message else {}
        return json.dumps({"level": record.levelname, **shown, **getattr(record, "fields", {})})


class _StandardOutput(logging.Handler):
    """Writes to the current sys.stdout."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stdout.write(f"{self.format(record)}\n")
        sys.stdout.flush()


def file_logger(name: str, formatter: logging.Formatter | None = None) -> logging.Logger:
    """The logger of a program, which writes only to standard output. Without a formatter, it writes plain lines."""
    logger = logging.getLogger(name)
    if not logger.handlers:
        handler = _StandardOutput()
        handler.setFormatter(formatter)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
    return logger
