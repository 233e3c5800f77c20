"""Predicted and observed: rules that were seen, rules that were not, and observations without a prediction."""

from pathlib import Path

import pytest

from trainium_core.assess.assessment import assess
from trainium_core.assess.findings import Assessment
from trainium_core.assess.observed import as_json, compared, countable_rules
from trainium_core.assess.rules import rules
from trainium_wire.job_progress import Observed

CODE = """
import torch

def train(model, batches):
    for batch in batches:
        loss = model(batch.cuda())
        loss.backward()
        print(loss.item())
        order = torch.sort(batch)
        rows = torch.nonzero(batch)
"""


@pytest.fixture
def assessment(tmp_path: Path) -> Assessment:
    (tmp_path / "train.py").write_text(CODE)
    return assess([tmp_path / "train.py"])


def test_counters_are_compared_with_findings(assessment: Assessment) -> None:
    observed = Observed(
        processes=1,
        fallbacks={"aten::_local_scalar_dense": 7, "aten::nonzero.out": 4, "aten::linalg_qr": 1, "aten::erfinv": 1},
        errors={"NCC_EVRF061": 1},
    )
    shown = as_json(compared(assessment, [observed], ["native", "xla"]), "job-1", "trainium")
    assert shown["predicted_and_seen"]["S01"] == ["aten::_local_scalar_dense on the CPU"]
    assert shown["predicted_and_seen"]["S03"] == ["aten::nonzero.out on the CPU"]
    assert "O05" in shown["predicted_not_seen"]
    assert shown["seen_not_predicted"] == [
        "aten::linalg_qr on the CPU",
        "aten::erfinv on the CPU",
        "NCC_EVRF061: integer arithmetic that would lose precision",
    ]
    assert "C02" in shown["not_counted"]


def test_recompilations_are_seen_with_their_reason(assessment: Assessment) -> None:
    observed = Observed(processes=1, compiled=40, reasons={"tensor 'x' size mismatch": 39})
    seen = compared(assessment, [observed], ["native"]).seen
    assert seen["S03"] == ["40 graphs compiled, for example because: tensor 'x' size mismatch"]


def test_first_graphs_do_not_count_as_recompilation(assessment: Assessment) -> None:
    assert compared(assessment, [Observed(processes=1, compiled=2)], ["native"]).seen == {}


def test_equal_counters_of_two_nodes_count_once(assessment: Assessment) -> None:
    counters = Observed(processes=1, fallbacks={"aten::erfinv": 1})
    assert len(compared(assessment, [counters, counters], ["native"]).not_predicted) == 1


def test_countable_rules_exist() -> None:
    assert countable_rules() <= {*rules()}
