"""The engines that run jobs."""

from collections.abc import Callable, Mapping

from trainium_core.engines.ec2.aws_jobs import Ec2Jobs
from trainium_core.engines.pcs.aws_jobs import SlurmJobs
from trainium_core.engines.registry import CLUSTER
from trainium_core.engines.sagemaker.aws_jobs import SageMakerJobs
from trainium_core.jobs.engine import JobEngine
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.naming import SLURM
from trainium_core.plan import Plan
from trainium_runtime.aws_service import Clients

JOB_ENGINES: Mapping[str, Callable[[Plan, str, Clients], JobEngine]] = {
    Ec2Jobs.key: Ec2Jobs,
    SageMakerJobs.key: SageMakerJobs,
    SlurmJobs.key: SlurmJobs,
}
"""Constructors by the engine's key in trn:stacks. Arguments: the plan, the CloudFormation stack's name, and clients."""


def engines_running_jobs(plan: Plan) -> tuple[str, ...]:
    """The keys of the plan's engines that run jobs, the cluster first."""
    return tuple(sorted((key for key in plan.stacks if key in JOB_ENGINES), key=lambda key: key != CLUSTER.key))


def chosen_engine(plan: Plan, on: str | None) -> str:
    """The key of the engine that --on names. Default: the cluster, else the plan's first other engine that runs jobs.

    Args:
        plan: The plan.
        on: The value of --on, if any.

    Raises:
        JobError: The plan does not have the engine, or the engine runs no jobs.
    """
    running = engines_running_jobs(plan)
    got, on = on, SlurmJobs.key if on == SLURM else on
    if on in running or (on is None and running):
        return on or running[0]
    allowed = ", ".join(running) or "none: no engine of the plan runs jobs"
    fix = f"add {on or CLUSTER.key} to trn:stacks, and run `trn deploy`"
    raise JobError([JobProblem(key="--on", got=got, allowed=allowed, fix=fix)])
