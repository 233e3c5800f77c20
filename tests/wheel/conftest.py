import pytest

from tests.wheel.environment import WheelEnvironment, install_wheel


@pytest.fixture(scope="session")
def wheel_environment() -> WheelEnvironment:
    return install_wheel()
