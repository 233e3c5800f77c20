"""Preflight for HyperPod and training jobs: SageMaker's quotas and the number of VPCs, without checks of EC2 nodes."""

from typing import Any

import pytest

from tests.core.fake_account import FakeAccount
from tests.core.plans import from_settings
from trainium_core.facts import facts, training_facts
from trainium_core.preflight.finding import Finding, verdict
from trainium_core.preflight.runner import preflight
from trainium_runtime.quota import Quota

WORKERS, CONTROLLER = "ml.trn1.32xlarge for cluster usage", "ml.m5.xlarge for cluster usage"
OF_CLUSTERS: tuple[str, str] = (
    facts()["hyperpod"]["quotas"]["per_cluster"],
    facts()["hyperpod"]["quotas"]["all_clusters"],
)
ROOM = dict.fromkeys((WORKERS, CONTROLLER, *OF_CLUSTERS), 20)


JOBS = "ml.trn1.32xlarge for training job usage"
LONGEST, VOLUME = training_facts()["quotas"]["longest_run"], training_facts()["quotas"]["volume"]


def findings(limits: dict[str, int], **settings: Any) -> dict[str, Finding]:
    quotas = {name: Quota(code="L-00000001", name=name, limit=limit) for name, limit in limits.items()}
    plan = from_settings(**({"nodes": 2, "stacks": ("hyperpod",)} | settings))
    return {finding.check: finding for finding in preflight(plan, FakeAccount(sagemaker=quotas))}


def test_hyperpod_runs_no_check_of_ec2_nodes() -> None:
    printed = findings(ROOM)
    assert set(printed) == {"identity", "network", "limits", "hyperpod", "bootstrap", "stack", "cost"}
    assert printed["hyperpod"].outcome == "pass"
    assert verdict(printed.values()) == "ready"


@pytest.mark.parametrize("name", ROOM)
@pytest.mark.parametrize(("limit", "outcome"), [(0, "fail"), (None, "unknown")])
def test_each_quota_must_exist_and_have_room(name: str, limit: int | None, outcome: str) -> None:
    limits = {key: value for key, value in (ROOM | {name: limit}).items() if value is not None}
    finding = findings(limits)["hyperpod"]
    assert finding.outcome == outcome
    assert name in finding.found


def test_training_plan_needs_no_instance_quota() -> None:
    arn = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/january"
    assert findings(ROOM | {WORKERS: 0}, hyperpod_training_plan=arn)["hyperpod"].outcome == "pass"


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({"stacks": ("cluster", "hyperpod")}, "2 VPCs"),
        ({"stacks": ("cluster", "sagemaker")}, "1 VPC"),
        ({"stacks": ("cluster", "sagemaker"), "sagemaker_vpc": "on"}, "2 VPCs"),
    ],
    ids=["hyperpod", "training", "training in a VPC"],
)
def test_each_stack_with_new_vpc_counts_against_vpc_quota(settings: dict[str, Any], needed: str) -> None:
    assert findings(ROOM, **settings)["network"].needed == needed


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        ({}, "pass"),
        ({JOBS: 1}, "fail"),
        ({LONGEST: 23 * 3600}, "fail"),
        ({VOLUME: 511}, "warn"),
    ],
    ids=["room", "instances", "time", "volume"],
)
def test_training_jobs_need_room_in_sagemaker_quotas(limits: dict[str, int], outcome: str) -> None:
    room = {JOBS: 2, LONGEST: 24 * 3600, VOLUME: 512}
    assert findings(room | limits, stacks=("sagemaker",))["training"].outcome == outcome
