"""What a person does with a cluster once it stands: commands to copy."""

from collections.abc import Iterator
from dataclasses import dataclass

from trainium_core.engines.registry import CLUSTER
from trainium_core.naming import CONSTRUCT_IDS, DEFAULT_CLUSTER_NAME
from trainium_core.nodes.session import DOCUMENT, LOGIN
from trainium_core.nodes.torchrun import torchrun_line
from trainium_core.problems import SETTING_PREFIX


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """An output of the stack: its name, what it is for, and the value or command."""

    name: str
    meaning: str
    value: str


def destroy_command(construct_id: str, cluster_name: str) -> str:
    """What removes a stack of this project's app."""
    engine = next((key for key, name in CONSTRUCT_IDS.items() if name == construct_id), CLUSTER.key)
    of_engine = "" if engine == CLUSTER.key else f" -c {SETTING_PREFIX}stacks={engine}"
    return f"cdk destroy {construct_id}{of_engine}{_of_cluster(cluster_name)}"


def next_steps(
    *,
    cluster_name: str,
    nodes: int,
    neuron_cores: int,
    region: str,
    group_name: str,
    cache_url: str,
    destroy: str,
    sessions: bool = True,
) -> Iterator[NextStep]:
    """The next steps, in the order they are wanted. region, group_name, cache_url: may be CDK tokens.

    neuron_cores: of each node. destroy: the command that removes the stack. sessions: whether Session Manager reaches
    the nodes.
    """
    if sessions:
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
    of_cluster = _of_cluster(cluster_name)
    yield NextStep(
        name="Nodes",
        meaning="Shows every node: whether it is proven, and what is wrong with one that is not",
        value=f"trn nodes{of_cluster}",
    )
    train = torchrun_line(nodes, neuron_cores)
    yield NextStep(name="Torchrun", meaning="Starts training; run it on every node", value=train)
    yield NextStep(name="CompileCache", meaning="Where compiled graphs are kept", value=cache_url)
    yield NextStep(
        name="Sleep",
        meaning="Terminates the nodes, and all else that is billed by the hour; cache and file systems stay",
        value=f"trn sleep{of_cluster}",
    )
    yield NextStep(name="Wake", meaning="Brings the nodes back", value=f"trn wake{of_cluster}")
    yield NextStep(name="Destroy", meaning="Removes everything", value=destroy)


def _of_cluster(cluster_name: str) -> str:
    """The option that names the cluster to a command which reads a plan without its name."""
    return "" if cluster_name == DEFAULT_CLUSTER_NAME else f" -c {SETTING_PREFIX}cluster_name={cluster_name}"
