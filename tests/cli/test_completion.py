"""What a shell offers when somebody presses Tab: bash by its own script, what an account knows by click's classes."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import click
import pytest
from click.shell_completion import ShellComplete

from tests.cli.conftest import FakeLocating
from tests.cli.jobs.cluster_with_jobs import TWO, Cluster
from tests.cli.running import run, run_program
from tests.core.job_bucket import JOB
from tests.core.test_clusters import FakeClusters, node, stack
from trainium_cli import completion_questions
from trainium_cli.completion_command import SHELLS
from trainium_cli.completion_values import COMPLETION
from trainium_cli.main import trn

LINES = {
    "trn dep": {"deploy"},
    "trn explain --he": {"--help"},
    "trn plan -c trn:capa": {"capacity="},
    "trn plan -c trn:capacity=capacity-b": {"capacity-block"},
    "trn plan -c trn:instance_type=trn2.48": {"trn2.48xlarge"},
    "trn status --region us-west": {"us-west-2"},
    "trn plan -c trn:nothing=": set[str](),
    "trn list --region us-west": {"us-west-2"},
    "trn capacity --regions us-east-2,us-w": {"us-east-2,us-west-2"},
    "trn init --type trn2.": {"trn2.3xlarge", "trn2.48xlarge"},
    "trn settings cap": {"capacity"},
    "trn logs ": set[str](),
}
DRIVER = """
compopt() { :; }
trn() { "$PYTHON" -c 'from trainium_cli.main import main; main()' "$@"; }
eval "$(trn completion bash)"
while IFS= read -r COMP_LINE; do
    COMP_POINT=${#COMP_LINE}
    COMPREPLY=()
    _trn_completion trn
    echo "${COMPREPLY[*]}"
done
"""


def test_bash_completes_commands_options_settings_and_their_values(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "HOME": str(tmp_path)}
    commands = "".join(f"{line}\n" for line in LINES)
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", DRIVER],
        input=commands,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stderr == ""
    answers = [set(line.split()) for line in ran.stdout.splitlines()]
    assert dict(zip(LINES, answers, strict=True)) == LINES


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_its_script(shell: str) -> None:
    assert "_TRN_COMPLETE" in run("completion", shell).stdout


def test_an_unknown_shell_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert "name the shell: bash, zsh, fish" in run("completion").stderr


def offered(*words: str) -> Sequence[str]:
    """What completes the last of the words."""
    completing = ShellComplete(trn, {}, "trn", COMPLETION)
    return [str(item.value) for item in completing.get_completions(list(words[:-1]), words[-1])]


@pytest.fixture
def long_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as a busy machine takes."""
    monkeypatch.setattr("trainium_cli.completion_values._SECONDS", 60)


@pytest.mark.usefixtures("long_timeout")
@pytest.mark.parametrize("words", [("jobs",), ("logs",), ("stop",), ("run", "--resume")])
def test_jobs_of_the_cluster_are_offered_the_newest_first(cluster: Cluster, words: Sequence[str]) -> None:
    later = "fit-20261122-130000"
    for job_id in (JOB.id, later):
        cluster.jobs.submit(replace(JOB, id=job_id), b"", over=cluster.jobs.current())
    assert offered(words[0], *TWO, *words[1:], "") == [later, JOB.id]
    assert offered(words[0], *TWO, *words[1:], "tr") == [JOB.id]


@pytest.mark.usefixtures("long_timeout")
@pytest.mark.parametrize("named", [(), (JOB.id,)])
def test_ranks_are_those_of_the_processes_of_the_job(cluster: Cluster, named: Sequence[str]) -> None:
    cluster.jobs.submit(JOB, b"", over=None)
    assert offered("logs", *TWO, *named, "--rank", "") == ["0", "1", "2", "3"]


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> FakeClusters:
    fake = FakeClusters(
        stacks=[stack("trn-pilot"), stack("other")],
        nodes=[node(1, "trn-pilot"), node(2, "other"), node(3, "trn-pilot")],
    )
    regions = list[str]()

    def fake_of(region: str, **_: object) -> FakeClusters:
        regions.append(region)
        return fake if region == "us-west-2" else FakeClusters()

    monkeypatch.setattr(completion_questions, "AwsClustersAccount", fake_of)
    return fake


@pytest.mark.usefixtures("long_timeout", "account")
@pytest.mark.parametrize("words", [("shell",), ("nodes", "--node")])
def test_nodes_are_those_of_the_cluster_of_the_line(words: Sequence[str], cluster: Cluster) -> None:  # noqa: ARG001
    assert offered(words[0], *TWO, *words[1:], "i-") == ["i-1", "i-3"]


@pytest.mark.usefixtures("long_timeout", "account")
def test_clusters_are_those_of_the_region_of_the_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert offered("status", "--region", "us-west-2", "--cluster", "") == ["other", "trn-pilot"]
    assert offered("status", "--region", "us-east-2", "--cluster", "") == []


@pytest.mark.usefixtures("long_timeout")
def test_an_account_that_refuses_completes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clusters: FakeLocating
) -> None:
    monkeypatch.chdir(tmp_path)
    clusters.unavailable = "the permission is missing"
    assert offered("logs", "--region", "us-west-2", "") == []


def test_nobody_waits_for_an_account_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = Event()

    def late(_ctx: click.Context) -> Sequence[str]:
        answered.wait(60)
        return ["late"]

    monkeypatch.setattr("trainium_cli.completion_values._SECONDS", 0)
    monkeypatch.setattr(completion_questions, "job_ids", late)
    assert offered("logs", "") == []
    answered.set()


@pytest.mark.parametrize("shell", SHELLS)
def test_nothing_else_is_printed_for_a_shell(shell: str, tmp_path: Path) -> None:
    """Neither that a profile is unknown nor what is wrong with the line."""
    given = {COMPLETION: f"{shell}_complete", "TRN_LINE": "trn jobs ", "COMP_WORDS": "trn jobs ", "COMP_CWORD": "2"}
    ended = run_program(AWS_PROFILE="nobody", AWS_CONFIG_FILE=str(tmp_path / "none"), **given)
    assert (ended.stdout.strip(), ended.stderr, ended.returncode) == ("", "", 0)
    broken = given | {"TRN_LINE": "trn no-such x", "COMP_WORDS": "trn no-such x"}
    assert run_program(**broken).stderr == ""
