"""Messages of Neuron, PyTorch, torchrun and Slurm are recognised, and the first cause in a log is found."""

import ast
import string
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import trainium_local.services
import trainium_userdata
from trainium_core.assess.rules import rules
from trainium_core.explanations.known_errors import (
    CAUSE,
    CONSEQUENCE,
    WARNING,
    explain_log,
    known_error,
    known_errors,
    nearest_errors,
)

_PUBLIC = tomllib.loads(Path(__file__).with_name("public_errors.toml").read_text())
PUBLIC: list[dict[str, str]] = _PUBLIC["text"]
REFUSALS = Path(trainium_local.services.__file__).parent
JOB_PROGRAM = Path(trainium_userdata.__file__).parent / "node"
FIRST_WEEK: list[dict[str, str]] = _PUBLIC["usual"]
_BLIND = tomllib.loads(Path(__file__).with_name("blind_errors.toml").read_text())
BLIND: list[dict[str, str]] = [row for rows in _BLIND.values() for row in rows]

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


@pytest.mark.parametrize("row", PUBLIC, ids=lambda row: row["link"].removeprefix("https://github.com/"))
def test_public_error_is_recognised(row: dict[str, str]) -> None:
    error = known_error(row["text"])
    assert error is not None
    assert error.name == row["name"]


@pytest.mark.parametrize("row", FIRST_WEEK, ids=lambda row: row["text"][:60])
def test_usual_message_of_the_first_week_is_recognised(row: dict[str, str]) -> None:
    error = known_error(row["text"])
    assert error is not None
    assert error.name == row["name"]


@pytest.mark.parametrize("row", BLIND, ids=lambda row: row["text"][:60])
def test_public_error_that_was_chosen_blindly_is_never_explained_wrongly(row: dict[str, str]) -> None:
    error = known_error(row["text"])
    assert (error.name if error else None) == row.get("name")


def test_quota_code_that_is_not_in_the_facts_is_unknown() -> None:
    assert known_error("L-7EA2A41E is too low") is None


class _AnyFact(dict[str, Any]):
    """Any fact of a message of the embedded AWS."""

    def __missing__(self, key: str) -> "_AnyFact":
        return self

    def __getitem__(self, key: object) -> "_AnyFact":
        return self

    def __format__(self, form: str) -> str:
        return "7.5" if form else "x1"


def _refusals() -> Iterator[str]:
    rules = tomllib.loads((REFUSALS / "launch_rules.toml").read_text())
    named = tomllib.loads((REFUSALS / "refusals.toml").read_text()).values()
    for row in [*named, *rules["launch"], *rules["reservation"], *rules["volume"]]:
        message = string.Formatter().vformat(row["message"], (), _AnyFact())
        yield f"An error occurred ({row['code']}) when calling the RunInstances operation: {message}"


@pytest.mark.parametrize("text", [*_refusals()], ids=lambda text: text[18:90])
def test_refusal_of_the_embedded_aws_is_recognised(text: str) -> None:
    assert known_error(text) is not None


def _sentences(folder: Path, calls: Mapping[str, int]) -> Iterator[str]:
    """The literal texts of an argument of the calls in the modules of a folder, with `7` for each value in them."""
    for module in folder.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            called = getattr(node, "func", None)
            name = getattr(called, "attr", None) or getattr(called, "id", "")
            if not isinstance(node, ast.Call) or name not in calls or len(node.args) <= calls[name]:
                continue
            match node.args[calls[name]]:
                case ast.Constant(value=str(text)) if text:
                    yield text
                case ast.JoinedStr(values=parts) if any(isinstance(part, ast.Constant) for part in parts):
                    yield "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts)
                case _:
                    pass


OWN_SENTENCES = sorted(
    {
        *_sentences(JOB_PROGRAM / "trn_job", dict.fromkeys(("SourceError", "InputError", "CheckpointError"), 0)),
        *_sentences(JOB_PROGRAM / "trn_job", {"declare": 1}),
        *_sentences(JOB_PROGRAM / "trn_node", {"_declare": 1}),
    }
    # The end of the sentence is another error, and explained as such.
    - {"7: 7", "7: 77", "7 has 7", "setup: 7"}
)


def test_own_sentences_are_found() -> None:
    assert len(OWN_SENTENCES) > 15


@pytest.mark.parametrize("sentence", OWN_SENTENCES)
def test_own_sentence_on_a_failed_job_is_recognised(sentence: str) -> None:
    assert known_error(sentence) is not None


def test_harmless_line_is_not_the_first_cause() -> None:
    log = ["CCOM WARN OFI plugin initNet() failed is EFA enabled?", "Failed to alloc DEVICE memory: 4096"]
    explanation = explain_log(log)
    assert explanation is not None
    assert explanation.error.name == "out of device memory"


def test_nearest_errors_share_rare_words_with_the_text() -> None:
    names = [error.name for error in nearest_errors("the quota of spot instances is low")]
    assert len(names) == 3
    assert "Spot Instance quota too low" in names
    assert nearest_errors("zzz") == []


def test_messages_have_links() -> None:
    assert [row for row in [*MESSAGES, *LOGS, *PUBLIC, *BLIND] if not row["link"].startswith("https://")] == []


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
