"""What a person does with a cluster once it stands: commands to copy, each a projection of the plan."""

from collections.abc import Iterator
from dataclasses import dataclass

from trainium_core.engines.registry import CONSTRUCT_IDS, EC2
from trainium_core.naming import DEFAULT_CLUSTER_NAME
from trainium_core.nodes.session import DOCUMENT, LOGIN
from trainium_core.nodes.torchrun import torchrun_command
from trainium_core.plan import Plan
from trainium_core.problems import SETTING_PREFIX


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """An output of the stack: its name, what it is for, and the value or command."""

    name: str
    meaning: str
    value: str


def next_steps(
    plan: Plan, *, group_name: str, cache_url: str, construct_id: str, region: str | None = None
) -> tuple[NextStep, ...]:
    """The next steps, in the order they are wanted. `group_name`, `cache_url` and `region` may be CDK tokens.

    region: of the nodes. Default: the plan's.
    """
    return tuple(_steps(plan, group_name, cache_url, construct_id, region or plan.region))


def destroy_command(plan: Plan, construct_id: str) -> str:
    """What removes a stack of the app."""
    engine = next((key for key, name in CONSTRUCT_IDS.items() if name == construct_id), EC2.key)
    of_engine = "" if engine == EC2.key else f" -c {SETTING_PREFIX}stacks={engine}"
    return f"cdk destroy {construct_id}{of_engine}{_of_cluster(plan)}"


def _of_cluster(plan: Plan) -> str:
    """The option that names the cluster to a command which reads a plan without its name."""
    default = plan.cluster_name == DEFAULT_CLUSTER_NAME
    return "" if default else f" -c {SETTING_PREFIX}cluster_name={plan.cluster_name}"


def _steps(plan: Plan, group_name: str, cache_url: str, construct_id: str, region: str) -> Iterator[NextStep]:
    if plan.network.effective_egress != "none":
        first = (
            f"aws autoscaling describe-auto-scaling-groups --region {region} "
            f"--auto-scaling-group-names {group_name} "
            "--query 'AutoScalingGroups[0].Instances[0].InstanceId' --output text"
        )
        yield NextStep(
            name="Session",
            meaning="A shell on the first node, by the AWS CLI and its Session Manager plugin",
            value=f"aws ssm start-session --region {region} --document-name {DOCUMENT} "
            f"--parameters command='{LOGIN}' --target $({first})",
        )
    of_cluster = _of_cluster(plan)
    yield NextStep(
        name="Nodes",
        meaning="Shows every node: whether it is proven, and what is wrong with one that is not",
        value=f"trn nodes{of_cluster}",
    )
    yield NextStep(name="Torchrun", meaning="Starts training; run it on every node", value=torchrun_command(plan))
    yield NextStep(name="CompileCache", meaning="Where compiled graphs are kept", value=cache_url)
    yield NextStep(
        name="Sleep",
        meaning="Terminates the nodes, and all else that is billed by the hour; cache and file systems stay",
        value=f"trn sleep{of_cluster}",
    )
    yield NextStep(name="Wake", meaning="Brings the nodes back", value=f"trn wake{of_cluster}")
    yield NextStep(name="Destroy", meaning="Removes everything", value=destroy_command(plan, construct_id))
