"""Why a job failed, from the output of its processes."""

import pytest

from trn_job.command import split_rank
from trn_job.failure import BEGIN, OF_TORCHRUN, Finder

TORCHRUN = """\
[rank 1] Traceback (most recent call last):
[rank 1]   File "train.py", line 3, in <module>
[rank 1]     raise ValueError("bad batch")
[rank 1] ValueError: bad batch
[rank 0] Traceback (most recent call last):
[rank 0]   File "train.py", line 9, in <module>
[rank 0] RuntimeError: Connection closed by peer [127.0.0.1]:33446
E1122 19:05:01 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: 1) local_rank: 1
Traceback (most recent call last):
  File "bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_19:05:01
  host      : node
  rank      : 1 (local_rank: 1)
  exitcode  : {code} (pid: 8)
  error_file: <N/A>
============================================================
"""


def fed(text: str) -> Finder:
    finder = Finder()
    for line in text.splitlines():
        rank, _, rest = line.partition("] ")
        is_ranks = rank.startswith("[rank ")
        finder.feed(int(rank[6:]) if is_ranks else None, rest if is_ranks else line)
    return finder


def test_rank_of_the_torchrun_summary_counts_before_earlier_tracebacks() -> None:
    rank_0 = "".join(line for line in TORCHRUN.splitlines(keepends=True) if line.startswith("[rank 0]"))
    failure = fed(rank_0 + TORCHRUN.replace(rank_0, "").format(code=1)).failure(1)
    assert (failure.rank, failure.exit_code, failure.sentence) == (1, 1, "ValueError: bad batch")
    assert failure.traceback
    assert failure.traceback.splitlines()[1] == '  File "train.py", line 3, in <module>'
    assert not failure.may_be_a_consequence


@pytest.mark.parametrize(
    ("line", "rank", "text"),
    [
        ("[rank 0] .[rank 0] .[rank 0] Traceback (most recent call last):", 0, BEGIN),
        ("[rank 0] ..[rank 3] TRN step=1", 3, "TRN step=1"),
        ("[rank 12] ...", 12, "..."),
        ("[rank 0] see [rank 1] too", 0, "see [rank 1] too"),
        ("[rank 0] TRN step=1[rank 0] ", 0, "TRN step=1"),
        ("[rank 0] TRN step=1[rank 1] ", 0, "TRN step=1[rank 1] "),
        ("...[rank 0] x", None, "...[rank 0] x"),
    ],
)
def test_separate_writes_of_a_line_have_one_rank(line: str, rank: int | None, text: str) -> None:
    assert split_rank(line) == (rank, text)


def test_traceback_after_compiler_dots_is_found() -> None:
    finder = Finder()
    for line in ("....Traceback (most recent call last):", "  File 'train.py', line 3", "RuntimeError: [F137] killed"):
        finder.feed(0, line)
    assert finder.failure(1).sentence == "RuntimeError: [F137] killed"


@pytest.mark.parametrize(
    "words",
    [
        "RuntimeError: nrt_execute failed: NRT_TIMEOUT status_code=5",
        "RuntimeError: status_code=1200 HW_ERR_COLLECTIVES: look at other workers",
        "RuntimeError: suspected hang in collectives",
        "RuntimeError: Timeout waiting for RX",
    ],
)
def test_runtime_error_about_a_lost_peer_may_be_a_consequence(words: str) -> None:
    finder = Finder()
    for line in (BEGIN, "  File 'train.py', line 3", words):
        finder.feed(0, line)
    assert finder.failure(1).may_be_a_consequence


def test_ranks_of_torch_distributed_are_parsed() -> None:
    text = TORCHRUN.replace("[rank 1] ", "[rank 1] [rank1]: ").replace("[rank 0] ", "[rank0]: ")
    failure = fed(text.format(code=1)).failure(1)
    assert (failure.rank, failure.sentence) == (1, "ValueError: bad batch")
    assert failure.traceback
    assert "[rank" not in failure.traceback


def test_earlier_traceback_of_a_killed_rank_does_not_count() -> None:
    failure = fed(TORCHRUN.format(code=-9)).failure(1)
    assert (failure.rank, failure.exit_code, failure.traceback) == (1, -9, None)
    assert failure.sentence == "ended by signal 9 (SIGKILL): out of memory?"


def test_first_fatal_traceback_counts_without_a_summary() -> None:
    failure = fed(TORCHRUN.partition("E1122")[0]).failure(1)
    assert (failure.rank, failure.sentence) == (1, "ValueError: bad batch")


def test_traceback_of_torchrun_does_not_count() -> None:
    text = f"{BEGIN}\n  File torchrun\n{OF_TORCHRUN[1]}: Process 8 got signal: 15\n"
    failure = fed(text).failure(-15)
    assert (failure.sentence, failure.traceback) == ("ended by signal 15 (SIGTERM)", None)


def test_caught_traceback_does_not_count() -> None:
    caught = "Traceback (most recent call last):\n  File\nKeyError: 'retried'\nTRN step=1\n"
    failure = fed(caught + caught.replace("KeyError: 'retried'", "ValueError: fatal")).failure(1)
    assert failure.sentence == "ValueError: fatal"


LAUNCHER = (
    "Traceback (most recent call last):\n  File\n"
    "subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 1.\n"
)


def test_traceback_of_a_launcher_does_not_hide_that_of_the_script() -> None:
    """`accelerate launch` runs the script as a child if it has one process."""
    script = "Traceback (most recent call last):\n  File\nValueError: bad batch\n"
    assert fed(script + LAUNCHER).failure(1).sentence == "ValueError: bad batch"
    assert fed(f"{script}Retrying\n{LAUNCHER}").failure(1).sentence.startswith("subprocess.CalledProcessError")
    assert fed(LAUNCHER).failure(1).sentence.startswith("subprocess.CalledProcessError")


def test_chained_exceptions_are_one_traceback() -> None:
    first = "Traceback (most recent call last):\n  File\nKeyError: 1\n"
    words = "\nDuring handling of the above exception, another exception occurred:\n\n"
    failure = fed(first + words + first.replace("KeyError: 1", "ValueError: 2")).failure(1)
    assert failure.traceback
    assert ("KeyError: 1" in failure.traceback, failure.sentence) == (True, "ValueError: 2")


@pytest.mark.parametrize(
    "sentence",
    [
        "RuntimeError: Connection closed by peer [10.0.0.1]:3",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
    ],
)
def test_lost_connection_may_be_a_consequence(sentence: str) -> None:
    assert fed(f"Traceback (most recent call last):\n  File\n{sentence}\n").failure(1).may_be_a_consequence


def test_last_line_is_reported_without_a_traceback() -> None:
    assert fed("make: no rule\n\n").failure(2).sentence == "ended with exit code 2; its last line: make: no rule"
