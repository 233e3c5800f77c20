"""What a command that ends a cluster's nodes says of the job that runs on them."""

from trainium_cli.cluster_selection import command_clients
from trainium_core.jobs.aws_jobs import AwsJobs
from trainium_core.nodes.aws_fleets import AwsFleets, NoFleetError
from trainium_core.plan import Plan
from trainium_runtime.errors import UnavailableError


def running_job_sentence(plan: Plan, stack: str) -> str | None:
    """None when no job of the stack's nodes is open."""
    clients = command_clients()
    fleets = AwsFleets(plan.region, clients=clients)
    try:
        deployed = fleets.deployed_stack(stack)
        bucket = fleets.fleet_resources(stack, deployed).records_bucket if deployed else None
        jobs = AwsJobs(plan.region, bucket, clients=clients) if bucket else None
        current = jobs.current() if jobs else None
        state = jobs.state(current.job.id) if jobs and current else None
    except NoFleetError:
        return None
    except UnavailableError as error:
        return f"could not tell whether a job runs: {error}"
    if state is None or state.is_over:
        return None
    return f"{state.job.id} is not over ({state.status}): what it has not saved is lost"
