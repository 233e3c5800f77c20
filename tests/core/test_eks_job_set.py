"""The JobSet of a job: its content, Kubernetes' own schemas, and rules of its API that no schema contains."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.core.plans import from_settings
from tools.lab.eks.kubernetes import problems
from trainium_core.engines.eks.job_program import LARGEST_CONFIG_MAP, program_config_map
from trainium_core.engines.eks.job_set import PodSettings, job_objects, job_set_name, priority_class
from trainium_core.engines.eks.yaml import yaml_documents
from trainium_core.jobs.job import new_job
from trainium_core.jobs.request import JobRequest
from trainium_core.plan import Plan
from trainium_wire.job import RESTART_CODE, Job

NOW = datetime(2026, 11, 29, 16, tzinfo=UTC)
PODS = PodSettings(image="registry/image:1", bucket="records", cache_url="s3://cache/neuron-compile-cache")
REASONS = ("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy")
FIELDS = r"metadata\.(name|namespace|uid|labels\['[^']+'\]|annotations\['[^']+'\])|spec\.(nodeName|serviceAccountName)|"
FIELDS += r"status\.(hostIP|hostIPs|podIP|podIPs)"
"""Field paths of environment variables (Kubernetes documentation, downward API)."""

NAME = {"type": "string", "pattern": "^[a-z]([a-z0-9-]*[a-z0-9])?$"}
RULE_NAME = {"type": "string", "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"}


def closed(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    properties = {**required, **(optional or {})}
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


JOB_SET_SCHEMA = closed(
    {
        "apiVersion": {"const": "jobset.x-k8s.io/v1alpha2"},
        "kind": {"const": "JobSet"},
        "metadata": closed({"name": NAME, "namespace": NAME, "labels": {"type": "object"}}),
        "spec": closed(
            {
                "replicatedJobs": {
                    "type": "array",
                    "items": closed(
                        {"name": NAME, "replicas": {"type": "integer", "minimum": 1}, "template": {"type": "object"}}
                    ),
                }
            },
            {
                "ttlSecondsAfterFinished": {"type": "integer", "minimum": 0},
                "failurePolicy": closed(
                    {},
                    {
                        "maxRestarts": {"type": "integer", "minimum": 0},
                        "restartStrategy": {"enum": ["Recreate", "BlockingRecreate", "InPlaceRestart"]},
                        "rules": {
                            "type": "array",
                            "items": closed(
                                {"name": RULE_NAME, "action": {"enum": ["FailJobSet", "RestartJobSet"]}},
                                {
                                    "onJobFailureReasons": {
                                        "type": "array",
                                        "items": {"enum": [*REASONS]},
                                        "uniqueItems": True,
                                    }
                                },
                            ),
                        },
                    },
                ),
            },
        ),
    }
)
"""What is used of the JobSet API v1alpha2, closed (API reference and validating webhook of JobSet 0.12, 2026-11)."""


def job_problems(spec: Mapping[str, Any]) -> list[str]:
    """Why Kubernetes refuses a Job of this specification."""
    return problems({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": spec})


@cache
def plan(
    instance_type: str = "trn1.32xlarge", region: str = "us-west-2", devices: str | None = None, name: str = "research"
) -> Plan:
    given = {"eks_devices": devices} if devices else {}
    nodes = 1 if instance_type == "trn1.2xlarge" else 1000
    return from_settings(
        instance_type=instance_type,
        region=region,
        nodes=nodes,
        cluster_name=name,
        stacks="eks",
        eks_cluster="prod",
        eks_namespace="training",
        **given,
    )


def job(a_plan: Plan, **request: Any) -> Job:
    return new_job(a_plan, JobRequest(script=Path("train.py"), **request), script="train.py", now=NOW)


@st.composite
def rendered(draw: st.DrawFn) -> tuple[Plan, Job, Sequence[Mapping[str, Any]]]:
    """Objects of jobs of every kind."""
    instance_type, region = draw(
        st.sampled_from([("trn1.32xlarge", "us-west-2"), ("trn1.2xlarge", "us-west-2"), ("trn2.48xlarge", "us-east-2")])
    )
    a_plan = plan(instance_type, region, draw(st.sampled_from([None, "plugin", "claim"])))
    a_job = job(
        a_plan,
        nodes=draw(st.integers(1, a_plan.nodes)),
        name=draw(st.from_regex("[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True)),
        retries=draw(st.integers(0, 100)),
        retry_on_exit_codes=tuple(draw(st.lists(st.integers(1, 255), max_size=3))),
        time_limit_minutes=draw(st.none() | st.integers(1, 10_000)),
        environment=draw(
            st.dictionaries(st.from_regex("[A-Z]{1,5}", fullmatch=True), st.text(max_size=20), max_size=2)
        ),
    )
    pods = PodSettings(
        image=draw(st.sampled_from(["a:b", "1.dkr.ecr.us-west-2.amazonaws.com/x@sha256:" + 64 * "0"])),
        bucket="records",
        cache_url="s3://cache/x",
        queue=draw(st.sampled_from([None, "team"])),
        priority=draw(st.integers(0, 100_000)),
    )
    return a_plan, a_job, job_objects(a_plan, a_job, pods)


Rendered = tuple[Plan, Job, Sequence[Mapping[str, Any]]]


def job_spec(job_set: Mapping[str, Any]) -> Mapping[str, Any]:
    (replicated,) = job_set["spec"]["replicatedJobs"]
    return replicated["template"]["spec"]


def pod_spec(job_set: Mapping[str, Any]) -> Mapping[str, Any]:
    return job_spec(job_set)["template"]["spec"]


def container(job_set: Mapping[str, Any]) -> Mapping[str, Any]:
    (only,) = pod_spec(job_set)["containers"]
    return only


def rendered_set(a_plan: Plan | None = None, **request: Any) -> Mapping[str, Any]:
    a_plan = a_plan or plan()
    return job_objects(a_plan, job(a_plan, **request), PODS)[0]


@given(rendered())
def test_objects_match_the_closed_schemas(given_job: Rendered) -> None:
    _, _, (job_set, *claims) = given_job
    jsonschema.validate(job_set, JOB_SET_SCHEMA)
    assert job_problems(job_spec(job_set)) == []
    assert [problem for each in claims for problem in problems(each)] == []


def test_program_matches_the_closed_schema_and_fits() -> None:
    made = program_config_map("default")
    assert problems(made) == []
    assert len(made["binaryData"]["program.zip"]) < LARGEST_CONFIG_MAP / 2


@pytest.mark.parametrize("field", ["completionmode", "podFailurePolicies"])
def test_unknown_field_is_refused_by_the_schema(field: str) -> None:
    (problem,) = job_problems({**job_spec(rendered_set()), field: "Indexed"})
    assert field in problem


@given(rendered())
def test_yaml_is_read_as_the_same_objects(given_job: Rendered) -> None:
    assert [*yaml.safe_load_all(yaml_documents(given_job[2]))] == [*given_job[2]]


@given(rendered())
def test_names_of_pods_are_host_names(given_job: Rendered) -> None:
    _, a_job, (job_set, *_) = given_job
    name = job_set["metadata"]["name"]
    pod = f"{name}-node-0-{a_job.nodes - 1}-abcde"
    assert len(pod) <= 63
    assert re.fullmatch("[a-z]([a-z0-9-]*[a-z0-9])?", pod)
    assert name.endswith("-20261129-160000")


@given(rendered())
def test_values_of_labels_are_valid(given_job: Rendered) -> None:
    job_set = given_job[2][0]
    for labels in (job_set["metadata"]["labels"], job_spec(job_set)["template"]["metadata"]["labels"]):
        assert all(re.fullmatch("[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", value) for value in labels.values())


@given(rendered())
def test_indexed_job_has_as_many_completions_as_pods(given_job: Rendered) -> None:
    _, a_job, (job_set, *_) = given_job
    spec = job_spec(job_set)
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", a_job.nodes, a_job.nodes)


@given(rendered())
def test_pod_failure_policy_is_valid(given_job: Rendered) -> None:
    """The API server's validation: restartPolicy Never, ordered exit codes without 0, and a container that exists."""
    job_set = given_job[2][0]
    spec, pod = job_spec(job_set), pod_spec(job_set)
    assert (pod["restartPolicy"], spec["backoffLimit"]) == ("Never", 0)
    for rule in spec["podFailurePolicy"]["rules"]:
        assert len({"onExitCodes", "onPodConditions"} & {*rule}) == 1
        codes = rule.get("onExitCodes")
        if codes:
            assert codes["containerName"] in {each["name"] for each in pod["containers"]}
            assert codes["values"] == sorted({*codes["values"]})
            assert 0 not in codes["values"]


@given(rendered())
def test_claims_of_containers_are_those_of_the_pod(given_job: Rendered) -> None:
    _, _, (job_set, *claims) = given_job
    pod = pod_spec(job_set)
    declared = {each["name"]: each["resourceClaimTemplateName"] for each in pod.get("resourceClaims", [])}
    used = {each["name"] for each in container(job_set)["resources"].get("claims", [])}
    assert used == {*declared}
    assert {*declared.values()} == {each["metadata"]["name"] for each in claims}
    assert {each["metadata"]["namespace"] for each in claims} <= {job_set["metadata"]["namespace"]}


@given(rendered())
def test_field_paths_are_those_of_the_downward_api(given_job: Rendered) -> None:
    paths = [
        one["valueFrom"]["fieldRef"]["fieldPath"] for one in container(given_job[2][0])["env"] if "valueFrom" in one
    ]
    assert paths
    assert all(re.fullmatch(FIELDS, path) for path in paths)


@given(rendered())
def test_mounted_volumes_exist_and_variables_are_set_once(given_job: Rendered) -> None:
    job_set = given_job[2][0]
    volumes = [each["name"] for each in pod_spec(job_set)["volumes"]]
    assert sorted(each["name"] for each in container(job_set)["volumeMounts"]) == sorted(volumes)
    names = [each["name"] for each in container(job_set)["env"]]
    assert len(names) == len({*names})


def test_only_the_exit_code_of_the_program_restarts_the_job() -> None:
    job_set = rendered_set()
    disrupted, other = job_spec(job_set)["podFailurePolicy"]["rules"]
    assert disrupted["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert (disrupted["action"], other["action"]) == ("Count", "FailJob")
    assert (other["onExitCodes"]["operator"], other["onExitCodes"]["values"]) == ("NotIn", [RESTART_CODE])
    policy = job_set["spec"]["failurePolicy"]
    assert policy["restartStrategy"] == "BlockingRecreate"
    assert [(one["action"], one["onJobFailureReasons"]) for one in policy["rules"]] == [
        ("FailJobSet", ["PodFailurePolicy"])
    ]


@pytest.mark.parametrize(("retries", "restarts"), [(0, False), (1, True)])
def test_job_without_retries_is_never_restarted(retries: int, restarts: bool) -> None:
    assert bool(rendered_set(retries=retries)["spec"]["failurePolicy"]["maxRestarts"]) == restarts


@pytest.mark.parametrize(
    ("instance_type", "limits"),
    [
        ("trn1.32xlarge", {"aws.amazon.com/neuron": 16, "vpc.amazonaws.com/efa": 8}),
        ("trn1.2xlarge", {"aws.amazon.com/neuron": 1}),
    ],
)
def test_pod_gets_all_devices_of_its_node_from_plugins(instance_type: str, limits: dict[str, int]) -> None:
    assert container(rendered_set(plan(instance_type)))["resources"] == {"limits": limits}


def test_trn2_pod_claims_all_devices_of_its_node() -> None:
    a_plan = plan("trn2.48xlarge", "us-east-2")
    _, claim = job_objects(a_plan, job(a_plan), PODS)
    assert claim["metadata"]["name"] == "trn-neuron-16-efa-16"
    requests = claim["spec"]["spec"]["devices"]["requests"]
    assert [(one["name"], one["exactly"]) for one in requests] == [
        ("neuron", {"deviceClassName": "neuron.aws.com", "allocationMode": "ExactCount", "count": 16}),
        ("efa", {"deviceClassName": "efa.networking.k8s.aws", "allocationMode": "ExactCount", "count": 16}),
    ]


def test_pod_runs_only_on_verified_nodes_of_its_cluster() -> None:
    pod = pod_spec(rendered_set())
    assert pod["nodeSelector"] == {"trn/cluster": "research"}
    # No other taint is tolerated, such as that of a node that is not verified yet.
    assert [one["key"] for one in pod["tolerations"]] == ["aws.amazon.com/neuron"]


def test_queue_and_priority_are_labels_of_kueue() -> None:
    a_plan = plan()
    pods = PodSettings(image="a:b", bucket="b", cache_url="s3://c/x", queue="team", priority=5)
    labels = job_objects(a_plan, job(a_plan), pods)[0]["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "team"
    assert labels["kueue.x-k8s.io/priority-class"] == priority_class(5)


def test_time_limit_is_enforced_by_kubernetes_only_long_after_it() -> None:
    assert pod_spec(rendered_set(time_limit_minutes=60))["activeDeadlineSeconds"] > 60 * 60 + 1200
    assert "activeDeadlineSeconds" not in pod_spec(rendered_set())


def test_job_set_of_a_job_whose_name_begins_with_a_digit_has_a_valid_name() -> None:
    a_plan = plan()
    assert job_set_name(job(a_plan, name="7b")) == "trn-7b-20261129-160000"
