"""The environment of a training container: what the plan's nodes would have, set where SageMaker lets one set it."""

import json

from trainium_core.engines.sagemaker.jobs.job import TrainingJob
from trainium_core.facts import facts, training_facts
from trainium_core.plan import Plan
from trainium_wire.cache_place import DIRECT

CHECKPOINT_FOLDER = f"{training_facts()['container']['root']}/checkpoints"

EXPECTED_PROCESSES = "TRN_EXPECTED_PROCESSES"
RENDEZVOUS_PORT = "TRN_RENDEZVOUS_PORT"
COMPILE_CACHE = "TRN_COMPILE_CACHE"
"""Variables that the container entry reads."""

CHECKPOINTS = "TRN_CHECKPOINT_DIR"
"""Variable by which the training script finds the folder that SageMaker keeps in S3; of the same name on a cluster."""


def launch_environment(plan: Plan, job: TrainingJob) -> dict[str, str]:
    """Every variable of the container; what the job itself gives wins.

    EFA is switched on for every type that has it: SageMaker's own launcher knows ml.trn1.32xlarge alone.
    """
    ours = {EXPECTED_PROCESSES: str(plan.neuron_cores_per_node), RENDEZVOUS_PORT: str(facts()["rendezvous"]["port"])}
    return ours | _network(plan) | _neuron(plan, job) | dict(job.environment)


def _network(plan: Plan) -> dict[str, str]:
    if not plan.uses_efa:
        return {}
    # Fork safety is needed on kernels before 5.15, and which one SageMaker's hosts have is not ours to know.
    return {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "FI_EFA_FORK_SAFE": "1"}


def _neuron(plan: Plan, job: TrainingJob) -> dict[str, str]:
    chosen: dict[str, str] = {}
    if plan.type.logical_neuroncore_configs:
        chosen["NEURON_LOGICAL_NC_CONFIG"] = str(plan.lnc)
    if job.cache_url is not None:
        # What a release's entries must have in common, but for the compiler, whose version only the container knows.
        known = {"url": job.cache_url, "instance_type": plan.instance_type, "lnc": plan.lnc or 1}
        chosen[COMPILE_CACHE] = json.dumps(known)
        chosen["NEURON_COMPILE_CACHE_URL"] = f"{job.cache_url}/{DIRECT}"
    if job.checkpoint_url is not None:
        chosen[CHECKPOINTS] = CHECKPOINT_FOLDER
    return chosen
