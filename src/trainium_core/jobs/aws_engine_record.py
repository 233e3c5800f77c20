"""Reads what the stack of an engine has for jobs."""

from trainium_core.jobs.engine import NoStackError
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.plan import Plan
from trainium_core.stacks.aws_records import AwsRecords
from trainium_core.stacks.aws_stacks import AwsStacks
from trainium_runtime.aws_service import Clients
from trainium_wire.stack_record import StackRecord


def engine_record(plan: Plan, stack: str, engine: str, clients: Clients) -> StackRecord:
    """The record of a stack for the jobs of a plan.

    Args:
        plan: The plan.
        stack: Name of the stack.
        engine: Key of the engine in trn:stacks.
        clients: The clients of AWS's services.

    Raises:
        JobError: The stack has nothing for such jobs.
        NoStackError: The stack is not deployed.
        UnavailableError: A request failed or was denied.
    """
    records = AwsRecords(plan.region, clients=clients).stack_records(stack)
    for record in records:
        if (record.engine, record.cluster) == (engine, plan.cluster_name):
            return record
    if not records and AwsStacks(plan.region, clients=clients).deployed_stack(stack) is None:
        raise NoStackError(stack, plan.region)
    allowed = f"a stack of {plan.cluster_name} for --on {engine}"
    fix = "name another stack, or wait until it is deployed"
    raise JobError([JobProblem(key="--stack", got=stack, allowed=allowed, fix=fix)])
