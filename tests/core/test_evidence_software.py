"""The software of a record, from what nodes and jobs have reported."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.core.job_bucket import JOB
from trainium_core.evidence.record import Software
from trainium_core.evidence.software import job_software
from trainium_core.jobs.progress import JobState
from trainium_wire.job_progress import Attempt, CacheUse, NodeProgress
from trainium_wire.node_record import CheckRecord, NodeRecord, StoredRecord

NOW = datetime(2026, 11, 26, tzinfo=UTC)


def record(driver: str, framework: str) -> StoredRecord:
    checks = (
        CheckRecord(name="driver", expected="", found=driver, ok=True),
        CheckRecord(name="framework", expected="any", found=framework, ok=True),
    )
    return StoredRecord(record=NodeRecord("i-0", "verified", "", checks=checks), written=NOW)


def software(*records: StoredRecord, stack: str | None = None) -> Software:
    cache = CacheUse(stack="xla", place="neuronx-cc-2.21.18209.0-043b1bf7/trn1-lnc1/xla/world-64")
    nodes = (NodeProgress(node=0, instance_id="i-0", state="ended", at=None, caches=(cache, CacheUse(stack="jax"))),)
    ids = tuple(f"i-{number}" for number in range(len(records) + 1))
    attempt = Attempt(number=1, started=None, instance_ids=ids, resume_from=None, nodes=nodes)
    state = JobState(job=replace(JOB, stack=stack), attempts=(attempt,), outcome=None)
    of_nodes = {f"i-{number}": stored for number, stored in enumerate(records)}
    return job_software(state, of_nodes | {"i-other": record("driver 1.0", "")}, git_commit=None, git_dirty=None)


@pytest.mark.parametrize(
    ("environment", "stack", "torch"),
    [
        ("aws_neuronx_venv_pytorch_2_9", None, "2.9"),
        ("aws_neuronx_venv_torch_neuronx_2_14_0", "native", "2.14.0"),
        ("aws_neuronx_venv_pytorch_2_9", "native", None),
        ("aws_neuronx_venv_jax_0_7", "jax", None),
        ("pytorch", None, None),
        ("none", None, None),
    ],
)
def test_version_of_pytorch_is_that_of_the_jobs_environment(
    environment: str, stack: str | None, torch: str | None
) -> None:
    assert software(record("driver 2.24.7, runtime 2.28.19", environment), stack=stack).torch == torch


def test_versions_are_read_from_the_records_of_the_jobs_nodes() -> None:
    first = record("driver 2.24.7, runtime 2.28.19", "aws_neuronx_venv_pytorch_2_9")
    versions = software(first, record("driver 2.25.1, no runtime on the host", "aws_neuronx_venv_pytorch_2_9"))
    assert (versions.driver, versions.runtime) == ("2.24.7 and 2.25.1", "2.28.19")
    assert versions.environment == "aws_neuronx_venv_pytorch_2_9"
    assert versions.compiler == "2.21.18209.0-043b1bf7"
    assert software().driver is None
