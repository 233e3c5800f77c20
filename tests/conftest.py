"""What holds for every test."""

import pytest


def pytest_make_parametrize_id(val: object, argname: str) -> None:
    """pytest-xdist runs nothing when two workers collect different ids, as bytes with a time or a boundary give."""
    if isinstance(val, bytes) and not (val.isascii() and val.decode("ascii").isprintable()):
        raise pytest.UsageError(f"a parameter {argname} holds unprintable bytes: give its cases ids")
