"""The request for a job: options and a file with the same values are equivalent, and all problems are reported."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.plans import plans
from trainium_core.jobs.job import access_problems, new_job
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.request import JobRequest, job_request, read_job_file
from trainium_core.plan import Plan
from trainium_core.plan.settings.jobs import JobAccess
from trainium_core.plan.settings.network import Egress, NetworkSettings
from trainium_core.problems import PlanError
from trainium_wire.job import Job

PARAMETER = "arn:aws:ssm:us-west-2:123456789012:parameter/token"
SECRET = "arn:aws:secretsmanager:us-west-2:123456789012:secret:token-AbCdEf"
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
PLAN = Plan(instance_type="trn1.32xlarge", region="us-west-2", nodes=4)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("print('hello')\n")
    return path


def problems_of(raw: dict[str, Any]) -> list[str]:
    with pytest.raises(JobError) as caught:
        job_request(raw)
    return [str(problem) for problem in caught.value.problems]


def test_file_and_options_are_equivalent(script: Path) -> None:
    file = script.with_name("job.toml")
    file.write_text(
        'script = "train.py"\nnodes = 2\nretries = 0\nretry_on_exit_codes = [75]\nenvironment = { A = "b" }\n'
        'arguments = ["--epochs", "3"]\n'
    )
    options = {"nodes": "2", "retries": "0", "retry_on_exit_codes": ("75",), "environment": {"A": "b"}}
    of_options = job_request({"script": str(script), **options, "arguments": ("--epochs", "3")})
    assert job_request(read_job_file(file)) == of_options


def test_all_problems_are_reported_at_once() -> None:
    wrong = {"script": "no.py", "nodes": 0, "retries": "many", "nodez": 3, "environment": {"TRN_X": "1"}}
    found = problems_of(wrong)
    assert len(found) == len(wrong)
    assert any("nodez: got 3" in problem and "nearest: nodes" in problem for problem in found)
    assert any("remove TRN_X" in problem for problem in found)


@pytest.mark.parametrize(
    ("raw", "fix"),
    [
        ({}, "specify script"),
        ({"command": "true"}, "specify name"),
        ({"command": "true", "name": "x", "arguments": ["a"]}, "write them into the command"),
        ({"command": "true", "name": "x", "retry_on_exit_codes": [0]}, "1 to 255"),
        ({"profile": "0,x"}, "a list of ranks, such as [0, 32]"),
        ({"script": __file__, "profile_device": True}, "specify profile too"),
        ({"secrets": {"T": "hunter2"}}, "set T to the ARN of a secret or parameter, not the secret value"),
        ({"secrets": {"T": PARAMETER}, "environment": {"T": "1"}}, "remove it from environment"),
        ({"inputs": {"a": "no-such-file"}}, "there is no file or directory no-such-file"),
        ({"checkpoints": "/tmp"}, "a folder in S3"),
    ],
)
def test_invalid_request_is_reported_with_its_fix(raw: dict[str, Any], fix: str) -> None:
    assert any(fix in problem for problem in problems_of(raw))


@pytest.mark.parametrize("secrets", [{"T": "hunter2"}, {"T": 1, "U": "hunter2"}, ["hunter2"], "hunter2"])
def test_secret_value_does_not_appear_in_messages(secrets: object) -> None:
    (problem,) = problems_of({"script": __file__, "secrets": secrets})
    assert "arn:aws:" in problem
    assert "hunter2" not in problem


@given(plans())
def test_every_node_gets_the_same_command(plan: Plan) -> None:
    job = new_job(plan, JobRequest(script=Path("a/train me.py")), script="a/train me.py", now=NOON)
    assert f"--nproc_per_node={plan.processes_per_node} " in job.command
    assert "--node_rank=$TRN_NODE_RANK --master_addr=$HEAD_NODE " in job.command
    assert job.command.endswith("'a/train me.py'")
    assert job.nodes == plan.nodes


@given(st.text("aZ09 ._-/é\n", max_size=60))
def test_job_id_is_valid_for_every_script_name(name: str) -> None:
    job = new_job(PLAN, JobRequest(), script=f"{name}.py", now=NOON)
    assert Job.from_json(job.to_json()) == job


DATA = {"inputs": {"t": "s3://data/tokens/a/"}, "secrets": {"T": PARAMETER}, "checkpoints": "s3://mine/kept/lm"}


def test_unsupported_framework_is_refused() -> None:
    any_stack = replace(PLAN, ami="ami-0123456789abcdef0")
    command = JobRequest(framework="jax", command="python train.py", name="train")
    assert new_job(any_stack, command, script=None, now=NOON).stack == "jax"
    with pytest.raises(JobError, match=r"allowed: a command: torchrun starts PyTorch's processes"):
        new_job(any_stack, JobRequest(framework="jax", script=Path("train.py")), script="train.py", now=NOON)
    with pytest.raises(JobError, match=r"allowed: xla or jax, on trn1\.32xlarge"):
        new_job(any_stack, JobRequest(framework="native"), script="train.py", now=NOON)


def test_arguments_may_contain_variables_of_folders() -> None:
    request = JobRequest(script=Path("train.py"), arguments=("--out=$TRN_OUTPUT_DIR", "$HOME"))
    assert new_job(PLAN, request, script="train.py", now=NOON).command.endswith(
        """ train.py --out="$TRN_OUTPUT_DIR" '$HOME'"""
    )


def test_profile_names_ranks_of_the_job() -> None:
    def profiled(*ranks: int, plan: Plan = PLAN, **request: Any) -> Job:
        return new_job(plan, JobRequest(profile=ranks, **request), script="train.py", now=NOON)

    last = PLAN.nodes * PLAN.processes_per_node - 1
    assert profiled(0, last).profile == (0, last)
    with pytest.raises(JobError, match=rf"allowed: 0 to {last}: the job has {last + 1} ranks"):
        profiled(0, last + 1)
    with pytest.raises(JobError, match=rf"allowed: 0 to {PLAN.nodes - 1}: the job has {PLAN.nodes} nodes"):
        profiled(PLAN.nodes, command="vllm serve", name="serve")
    with pytest.raises(JobError, match="allowed: no value on GPUs"):
        profiled(0, plan=Plan(instance_type="p5.48xlarge", region="us-west-2"))


def test_job_may_name_data_that_the_plan_allows() -> None:
    access = JobAccess(inputs=("s3://data/tokens",), secrets=(PARAMETER,), checkpoints="s3://mine/kept/")
    plan = Plan(
        instance_type="trn1.32xlarge", region="us-west-2", network=NetworkSettings(egress="nat-gateway"), jobs=access
    )
    job = new_job(plan, JobRequest(**DATA), script="train.py", now=NOON)
    assert (job.inputs, job.secrets, job.checkpoints) == tuple(DATA.values())
    assert Job.from_json(job.to_json()) == job
    assert new_job(plan, JobRequest(), script="train.py", now=NOON).checkpoints == "s3://mine/kept"


def test_data_outside_the_plan_is_refused_with_its_setting() -> None:
    with pytest.raises(JobError) as caught:
        new_job(PLAN, JobRequest(**DATA), script="train.py", now=NOON)
    shown = str(caught.value)
    assert all(f"trn:job_{name}" in shown for name in ("inputs", "secrets", "checkpoints"))


def test_folder_with_the_same_prefix_is_another_folder() -> None:
    access = JobAccess(inputs=("s3://data/tok",))
    assert [problem.key for problem in access_problems(access, JobRequest(inputs=DATA["inputs"]))] == ["inputs"]


@pytest.mark.parametrize(
    ("egress", "arn", "allowed"),
    [
        ("none", PARAMETER, "no value with egress none"),
        ("vpc-endpoints", PARAMETER, None),
        ("vpc-endpoints", SECRET, "only parameters of Systems Manager with egress vpc-endpoints"),
        ("nat-gateway", SECRET, None),
        ("nat-gateway", PARAMETER.replace("us-west-2", "us-east-1"), "a resource in us-west-2"),
    ],
)
def test_secrets_that_nodes_cannot_reach_are_refused_in_the_plan(egress: Egress, arn: str, allowed: str | None) -> None:
    sections = {"network": NetworkSettings(egress=egress), "jobs": JobAccess(secrets=(arn,))}
    if allowed is None:
        Plan(instance_type="trn1.32xlarge", region="us-west-2", **sections)
        return
    with pytest.raises(PlanError, match=allowed):
        Plan(instance_type="trn1.32xlarge", region="us-west-2", **sections)


@pytest.mark.parametrize("text", ["", '{"format": 3}', '{"format": 1, "id": "../x"}'])
def test_text_that_is_not_a_job_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a job"):
        Job.from_json(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("submitted_at", 5),
        ("retries", "9"),
        ("nodes", True),
        ("command", 7),
        ("environment", {"A": 1}),
        ("retry_on_exit_codes", ["75"]),
        ("compile_cache", 1),
    ],
)
def test_job_with_a_field_of_wrong_type_is_refused(name: str, value: object) -> None:
    job = Job(id="train-1", nodes=1, processes_per_node=1, command="true")
    with pytest.raises(ValueError, match=f"not a job: {name} is "):
        Job.from_json(json.dumps({**job.as_record(), name: value}))


def test_script_and_command_exclude_each_other(script: Path) -> None:
    (problem,) = problems_of({"script": str(script), "command": "true"})
    assert "remove command or script" in problem


def test_script_may_be_named_by_its_path_in_the_source(script: Path) -> None:
    assert job_request({"script": "train.py", "source": str(script.parent)}).script == script


def test_invalid_toml_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text("nodes = = 2\n")
    with pytest.raises(JobError, match="line 1"):
        read_job_file(file)


@pytest.mark.parametrize("text", [f"nodes = {'[' * 5000}", f"nodes = {'1' * 5000}"], ids=["deep", "long"])
def test_toml_that_the_parser_cannot_read_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "job.toml"
    file.write_text(text)
    with pytest.raises(JobError, match="allowed: TOML"):
        read_job_file(file)


def test_more_nodes_than_the_cluster_has_are_refused() -> None:
    with pytest.raises(JobError, match="nodes: got 5"):
        new_job(PLAN, JobRequest(nodes=5), script="train.py", now=NOON)
