"""Environments with the wheel, for all tests of the wheel."""

import pytest

from tests.wheel.environment import WheelEnvironment, install_wheel


@pytest.fixture(scope="session")
def wheel_environment() -> WheelEnvironment:
    """The constructs, without any extra."""
    return install_wheel()


@pytest.fixture(scope="session")
def command_line() -> WheelEnvironment:
    """The constructs and `trn`."""
    return install_wheel("cli")
