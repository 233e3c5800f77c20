"""Messages of Neuron, PyTorch, torchrun and Slurm are recognised, and the first cause in a log is found."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from trainium_core.assess.rules import rules
from trainium_core.explanations.known_errors import CAUSE, CONSEQUENCE, WARNING, explain_log, known_error, known_errors

_WORDS = tomllib.loads(Path(__file__).with_name("neuron_words.toml").read_text())
MESSAGES: list[dict[str, Any]] = _WORDS["message"]
LOGS: list[dict[str, Any]] = _WORDS["log"]
DOCUMENTED_CODES: list[str] = _WORDS["compiler_codes"]
FAILED_STATUSES: list[str] = _WORDS["failed_statuses"]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["text"][-60:])
def test_messages_of_neuron_and_launchers_are_recognised(message: dict[str, Any]) -> None:
    error = known_error(message["text"])
    assert error is not None
    assert error.name == message["name"]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log["name"])
def test_first_cause_in_a_log_is_reported(log: dict[str, Any]) -> None:
    explanation = explain_log(log["text"].splitlines())
    assert explanation is not None
    assert explanation.error.name == log["name"]
    assert log["line"] in explanation.text


@pytest.mark.parametrize("code", DOCUMENTED_CODES)
def test_documented_compiler_code_has_a_specific_row(code: str) -> None:
    error = known_error(f"error: [NCC_{code}] something")
    assert error is not None
    assert error.name not in ("compiler error", "internal compiler error")


@pytest.mark.parametrize("status", FAILED_STATUSES)
def test_failed_runtime_status_is_recognised(status: str) -> None:
    assert known_error(f"Failure: {status} in nrt_execute()") is not None


def test_undocumented_compiler_code_is_a_compiler_error() -> None:
    error = known_error("[NCC_EXYZ999] something new")
    assert error is not None
    assert error.name == "compiler error"


def test_messages_have_links() -> None:
    assert [row for row in [*MESSAGES, *LOGS] if not row["link"].startswith("https://")] == []


def test_rows_are_complete() -> None:
    for error in known_errors():
        assert error.kind in (CAUSE, CONSEQUENCE, WARNING)
        assert all((error.cause, error.fix, error.source))
        assert set(error.rules) <= {*rules()}
    names = [error.name for error in known_errors()]
    assert len(names) == len(set(names))


def test_warning_counts_only_without_an_error() -> None:
    warning = "pt-xla-profiler: CompileTime too frequent: 23 counts during 12 steps"
    alone, failed = explain_log([warning]), explain_log([warning, "RuntimeError: nrt_load_collectives status=10"])
    assert alone is not None
    assert failed is not None
    assert (alone.error.kind, failed.error.kind) == (WARNING, CAUSE)


def test_unknown_exception_before_a_consequence_is_reported() -> None:
    log = [
        "[rank 3] Traceback (most recent call last):",
        '[rank 3]   File "train.py", line 3, in <module>',
        "[rank 3] ValueError: batch of 7 cannot be split",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    ]
    explanation = explain_log(log)
    assert explanation is not None
    assert explanation.error.kind == CONSEQUENCE
    assert explanation.unknown == "ValueError: batch of 7 cannot be split"


def test_lines_with_different_status_are_each_searched() -> None:
    explanation = explain_log(["nrt_execute: status=0", "nrt_execute: status=1004"])
    assert explanation is not None
    assert explanation.error.name == "execution failed"


def test_line_without_an_error_is_not_recognised() -> None:
    assert explain_log(["step 1 loss 2.5", "saved checkpoint-100 in 3.2 s", ""]) is None
