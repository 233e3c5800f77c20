"""The CreateTrainingJob request: a pure function of plan and job, valid by AWS's own model."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from tests.core.jobs import JOB, TRAINING_PLAN, job_in, small_plan
from tests.core.plans import from_settings, plans
from tests.core.request_model import refused
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.engines.sagemaker.jobs.job import TrainingJob
from trainium_core.engines.sagemaker.jobs.request import training_job_request
from trainium_core.facts import training_facts
from trainium_core.jobs.problems import JobError
from trainium_core.plan import Plan

TRAINING_TYPES: list[str] = training_facts()["types"]["training"]
PLANS = [
    from_settings(instance_type=name, region=region)
    for name in TRAINING_TYPES
    for region in builtin_catalog()[name].zones
]


def request(plan: Plan | None = None, **changes: Any) -> dict[str, Any]:
    chosen = plan or from_settings(nodes=2)
    return training_job_request(chosen, job_in(chosen, **changes))


jobs = st.builds(
    TrainingJob,
    name=st.just(JOB.name),
    script=st.sampled_from(["train.py", "src/train it.py"]),
    image=st.just(JOB.image),
    role_arn=st.just(JOB.role_arn),
    source_url=st.just(JOB.source_url),
    output_url=st.just(JOB.output_url),
    cache_url=st.sampled_from([None, JOB.cache_url]),
    checkpoint_url=st.sampled_from([None, JOB.checkpoint_url]),
    arguments=st.sampled_from([(), ("--epochs", "3")]),
    environment=st.dictionaries(st.sampled_from(["A", "FI_PROVIDER"]), st.text(max_size=5)),
    inputs=st.dictionaries(st.sampled_from(["train", "test"]), st.just("s3://other-bucket/data/")),
    input_mode=st.sampled_from(["File", "FastFile"]),
    max_minutes=st.sampled_from([1, 60, 24 * 60, 672 * 60]),
    spot_wait_minutes=st.sampled_from([None, None, 60]),
    warm_pool_minutes=st.sampled_from([0, 0, 0, 30, 360]),
    training_plan_arn=st.sampled_from([None, None, TRAINING_PLAN]),
    kms_key=st.sampled_from([None, "1234abcd-12ab-34cd-56ef-1234567890ab"]),
)


often_refused = settings(max_examples=50, suppress_health_check=[HealthCheck.filter_too_much])


def made_of(plan: Plan, job: TrainingJob) -> dict[str, Any]:
    """The request, for examples that pass our rules."""
    try:
        return training_job_request(plan, replace(job, image=job_in(plan).image))
    except JobError:
        reject()


@often_refused
@given(plan=plans(TRAINING_TYPES), job=jobs)
def test_every_accepted_job_is_valid_and_waits_only_for_spot(plan: Plan, job: TrainingJob) -> None:
    made = made_of(plan, job)
    assert refused(made) == []
    stopping = made["StoppingCondition"]
    assert ("MaxWaitTimeInSeconds" in stopping) == made["EnableManagedSpotTraining"]
    assert stopping.get("MaxWaitTimeInSeconds", 10**9) >= stopping["MaxRuntimeInSeconds"]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.instance_type} {plan.region}")
def test_training_request_is_valid_for_every_type_and_region(plan: Plan) -> None:
    made = request(plan)
    assert refused(made) == []
    assert made["ResourceConfig"]["InstanceType"] == f"ml.{plan.instance_type}"
    assert made["ProfilerConfig"] == {"DisableProfiler": True}


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.instance_type} {plan.region}")
def test_efa_is_enabled_exactly_for_types_with_efa(plan: Plan) -> None:
    environment = request(plan)["Environment"]
    chosen = {name: environment.get(name) for name in ("FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA")}
    wanted = {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"} if plan.uses_efa else dict.fromkeys(chosen)
    assert chosen == wanted


def test_lnc_is_set_only_for_types_that_allow_it() -> None:
    trainium2 = from_settings(instance_type="trn2.48xlarge", region="us-east-2", logical_neuroncore_config=1)
    environment = request(trainium2)["Environment"]
    assert (environment["NEURON_LOGICAL_NC_CONFIG"], environment["TRN_EXPECTED_PROCESSES"]) == ("1", "128")
    assert "NEURON_LOGICAL_NC_CONFIG" not in request()["Environment"]


def test_time_limits_are_in_seconds_and_spot_waits_twice_as_long() -> None:
    assert request(max_minutes=30)["StoppingCondition"] == {"MaxRuntimeInSeconds": 1800}
    spot = request(from_settings(capacity="spot"), max_minutes=120)["StoppingCondition"]
    assert spot == {"MaxRuntimeInSeconds": 7200, "MaxWaitTimeInSeconds": 14400}


def test_training_plan_overrides_spot() -> None:
    made = request(from_settings(capacity="spot"), training_plan_arn=TRAINING_PLAN)
    assert made["ResourceConfig"]["TrainingPlanArn"] == TRAINING_PLAN
    assert made["EnableManagedSpotTraining"] is False


def test_no_more_storage_is_requested_than_local_disks_hold() -> None:
    plan = small_plan(root_volume_gib=600)
    volume = request(plan)["ResourceConfig"]["VolumeSizeInGB"]
    assert volume * 2**30 <= plan.type.nvme_disks * plan.type.nvme_disk_gb * 10**9 < (volume + 1) * 2**30
    assert request(from_settings(root_volume_gib=600))["ResourceConfig"]["VolumeSizeInGB"] == 600


def test_job_has_the_cluster_tag_and_the_tags_of_the_plan() -> None:
    made = request(from_settings(tags={"team": "ml"}))
    assert made["Tags"] == [{"Key": "trn:cluster", "Value": "trn-pilot"}, {"Key": "team", "Value": "ml"}]


def test_our_types_and_longest_warm_pool_equal_those_of_the_api_model() -> None:
    import botocore.session

    model = botocore.session.Session().get_service_model("sagemaker")
    of_trainium = {
        shape: {name.removeprefix("ml.") for name in model.shape_for(shape).enum if "trn" in name}
        for shape in ("TrainingInstanceType", "ReservedCapacityInstanceType")
    }
    assert of_trainium["TrainingInstanceType"] == set(TRAINING_TYPES)
    assert of_trainium["ReservedCapacityInstanceType"] == set(training_facts()["types"]["training_plan"])
    keep_alive = model.shape_for("KeepAlivePeriodInSeconds").metadata["max"]
    assert keep_alive == training_facts()["time"]["longest_warm_pool_minutes"] * 60


def test_checkpoints_and_graphs_are_stored_at_the_urls_of_the_job() -> None:
    made = request()
    assert made["CheckpointConfig"]["S3Uri"] == JOB.checkpoint_url
    assert made["Environment"]["TRN_CHECKPOINT_DIR"] == made["CheckpointConfig"]["LocalPath"]
    assert made["Environment"]["NEURON_COMPILE_CACHE_URL"] == f"{JOB.cache_url}/direct"
