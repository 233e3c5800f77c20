"""`trn explain`: errors as users paste them, each with cause, fix and source."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.running import run
from trainium_cli.exit_codes import ExitCode
from trainium_core.assess.rules import rules
from trainium_core.explanations.known_errors import known_error, known_errors

PASTED = {
    "An error occurred (ExpiredToken) when calling the ListBuckets operation": "credentials have expired",
    "Unable to locate credentials. You can configure credentials by running aws configure": "no credentials",
    "x is not authorized to perform: ec2:RunInstances with an explicit deny in a service control policy": (
        "denied by a policy of the organization (SCP or RCP)"
    ),
    "SSM parameter /cdk-bootstrap/hnb659fds/version not found. Has the environment been bootstrapped?": (
        "not bootstrapped"
    ),
    "SessionManagerPlugin is not found. Please refer to SessionManager Documentation": (
        "Session Manager plugin not installed"
    ),
    'Failed to connect to proxy URL: "http://proxy:3128"': "AWS was not reached",
    "PendingVerification: Your request for accessing resources in this region is being validated": (
        "account is being verified"
    ),
    "Could not connect to the endpoint URL: https://ec2.us-wset-2.amazonaws.com/": "AWS was not reached",
}


@pytest.mark.parametrize("text", PASTED)
def test_error_is_recognised_by_its_text(text: str) -> None:
    found = known_error(text)
    assert found is not None
    assert found.name == PASTED[text]


def test_cause_fix_and_source_are_shown() -> None:
    ended = run("explain", "VcpuLimitExceeded")
    assert ended.exit_code == ExitCode.OK
    (known,) = [one for one in known_errors() if one.name == "vCPU quota too low"]
    shown = " ".join(ended.stdout.split())
    assert all(text in shown for text in (known.cause, known.fix, known.source))


def test_unknown_error_names_the_nearest_ones() -> None:
    ended = run("explain", "the subnet of the nodes is odd")
    assert ended.exit_code == ExitCode.NOT_READY
    assert "Unknown error." in ended.stderr
    names = [line.strip() for line in ended.stderr.splitlines() if line.strip().startswith("trn explain '")]
    assert len(names) == 3
    assert run("explain", names[0].removeprefix("trn explain '").removesuffix("'")).exit_code == ExitCode.OK


def test_file_is_read(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("step 1\nModuleNotFoundError: No module named 'torch_xla'\n")
    ended = run("explain", str(log))
    assert ended.exit_code == ExitCode.OK
    assert "Neuron package is missing" in ended.stdout
    assert "2: ModuleNotFoundError" in ended.stdout


@pytest.mark.parametrize("rule", ["C03", "c03", "L-flash-attn"])
def test_rule_of_assess_is_shown(rule: str) -> None:
    ended = run("explain", rule)
    assert ended.exit_code == ExitCode.OK
    known = next(one for key, one in rules().items() if key.casefold() == rule.casefold())
    shown = " ".join(ended.stdout.split())
    assert all(" ".join(text.split()) in shown for text in (known.id, known.why, known.fix))
    assert json.loads(run("explain", rule, "--json").stdout)["id"] == known.id


@pytest.mark.parametrize("arguments", [(), ("",), (" ", "")])
def test_missing_error_text_is_requested(arguments: Sequence[str]) -> None:
    ended = run("explain", *arguments)
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert "pass the error" in ended.stderr


@pytest.mark.parametrize("arguments", [("-",), ()])
def test_log_on_standard_input_is_explained_by_its_first_cause(arguments: Sequence[str]) -> None:
    log = (
        "step 1 loss 2.5\n"
        "[rank 7] [F137] neuronx-cc was forcibly killed - This most commonly occurs due to\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    )
    ended = run("explain", *arguments, stdin=log)
    assert ended.exit_code == ExitCode.OK
    assert "compiler was killed" in ended.stdout
    assert "2: [F137] neuronx-cc" in ended.stdout


def test_consequence_is_named_after_an_unknown_exception() -> None:
    log = (
        "Traceback (most recent call last):\n  File 'x.py'\nValueError: seven\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    )
    shown = run("explain", "-", stdin=log).stdout
    assert "another process failed (consequence)" in shown
    assert "ValueError: seven" in shown
