"""`trn up` in a folder with a user's files and an account that is not bootstrapped, and then with --down."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.account import Account, Run
from tests.deploy.command import run_trn
from tests.local.conftest import EmbeddedAws
from trainium_local.server import Settings

JOB = 'name = "fit"\ncommand = "mkdir -p out && echo weights > out/model.pt"\nsource = "."\n'
OWN = {"app.py": "import gradio\n", "README.md": "# Mine\n", "job.toml": JOB}


@dataclass(frozen=True, kw_only=True)
class Runs:
    first: Run
    second: Run
    folder: Path
    account: Account


@pytest.fixture(scope="module")
def runs(start_embedded_aws: Callable[[Settings], EmbeddedAws], tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("Nano GPT")
    for name, text in OWN.items():
        (folder / name).write_text(text)
    account = Account(aws=start_embedded_aws(Settings()), folder=tmp_path_factory.mktemp("account"))
    new = ("--type", "trn1.2xlarge", "--region", "us-west-2", "--ends", "8h")
    first = run_trn(account, "up", "job.toml", "--yes", *new, folder=folder)
    second = run_trn(account, "up", "job.toml", "--yes", "--down", folder=folder)
    return Runs(first=first, second=second, folder=folder, account=account)


def test_script_becomes_results_in_one_command(runs: Runs) -> None:
    assert runs.first.code == 0, runs.first.printed
    model = next(runs.folder.glob("trn-results/fit-*/outputs/working-directory/out/model.pt"))
    assert model.read_text() == "weights\n"


def test_users_files_stay_and_the_cluster_is_named_after_the_folder(runs: Runs) -> None:
    assert {name: (runs.folder / name).read_text() for name in OWN} == OWN
    assert "Written: cdk.json, cdk_app.py." in runs.first.printed
    assert "The cluster is named nano-gpt" in runs.first.printed


def test_second_time_only_the_job_runs_and_down_leaves_nothing(runs: Runs) -> None:
    assert runs.second.code == 0, runs.second.printed
    assert "cdk: " not in runs.second.printed
    assert len([*runs.folder.glob("trn-results/fit-*")]) == 2
    assert "nothing left of nano-gpt" in runs.second.printed
