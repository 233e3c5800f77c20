"""`trn sagemaker` as a user runs it, with an account and jobs in memory."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.cli.running import GOOD
from tests.core.fake_jobs import FakeJobs
from tests.core.fake_sagemaker_account import FakeSageMakerAccount
from trainium_cli.jobs import (
    sagemaker_describe_command,
    sagemaker_following,
    sagemaker_list_command,
    sagemaker_logs_command,
    sagemaker_preflight_command,
    sagemaker_run_command,
    sagemaker_stop_command,
)
from trainium_cli.main import trn
from trainium_core.engines.sagemaker.jobs import follow

NAME = "trn-pilot--first"


class Aws:
    """The account and its jobs, as every command of the group finds them."""

    def __init__(self) -> None:
        self.account, self.jobs = FakeSageMakerAccount(), FakeJobs()
        self.is_interactive = True

    def run(self, command: str, *arguments: str, typed: str | None = None) -> Result:
        return CliRunner().invoke(trn, ["sagemaker", command, *arguments, *GOOD], prog_name="trn", input=typed)

    def train(self, *options: str, typed: str | None = None) -> Result:
        return self.run("run", "train.py", "--name", NAME, *options, typed=typed)

    @property
    def request(self) -> Any:
        (request,) = self.jobs.started
        return request


@pytest.fixture(name="aws")
def aws_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Aws:
    made = Aws()
    take_the_place_of_aws(made, monkeypatch)
    monkeypatch.setattr(sagemaker_following, "_is_interactive", lambda: made.is_interactive)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('learnt')")
    monkeypatch.setenv("COLUMNS", "160")
    return made


def take_the_place_of_aws(made: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL_SECONDS", 0)
    for module in (sagemaker_run_command, sagemaker_preflight_command):
        monkeypatch.setattr(module, "AwsSageMakerAccount", lambda _: made.account)
    for module in (sagemaker_run_command, sagemaker_logs_command, sagemaker_stop_command):
        monkeypatch.setattr(module, "AwsTrainingJobControl", lambda _: made.jobs)
    monkeypatch.setattr(sagemaker_describe_command, "AwsPrices", lambda _: None)
    for module in (sagemaker_list_command, sagemaker_describe_command):
        monkeypatch.setattr(module, "AwsTrainingJobs", lambda _: made.jobs)
