import pytest

from tests.wheel.environment import WheelEnvironment, install_wheel


@pytest.fixture(scope="session")
def wheel_environment(tmp_path_factory: pytest.TempPathFactory) -> WheelEnvironment:
    return install_wheel(tmp_path_factory.mktemp("wheel"))
