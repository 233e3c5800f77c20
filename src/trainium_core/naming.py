"""Names that the template, the nodes and the command line must agree on."""

from collections.abc import Mapping

STACK_NAME = "TrnClusterStack"
"""Id in the app of the stack of every cluster; the name in CloudFormation of the default cluster's."""

CONSTRUCT_IDS: Mapping[str, str] = {
    "cluster": STACK_NAME,
    "sagemaker": "SageMakerTrainingStack",
    "hyperpod": "HyperPodStack",
}
"""The ids in the app of the stacks that trn:stacks can name, in the order in which they are made and shown."""

DEFAULT_CLUSTER_NAME = "trn-pilot"
"""The cluster of a plan that does not name its own."""

CACHE_PREFIX = "neuron-compile-cache"
"""Folder of the compile cache in its bucket."""

ASLEEP_PARAMETER = "Asleep"
"""Parameter of the stack: `true` while the cluster sleeps, else `false`."""

SET_ASLEEP_FUNCTION = "TrainiumCdkSetAsleep"
"""Logical id of the function that sets this parameter, in a stack that has it."""

BOOTSTRAP_STACK_NAME = "CDKToolkit"
"""Stack that `cdk bootstrap` makes."""

SESSION_SERVICES = ("ssm", "ssmmessages")
"""Services that Session Manager needs an endpoint of (Systems Manager documentation, VPC endpoints)."""

SOURCE_PREFIX = "source"
"""Folder that the source of training jobs is uploaded to, in the bucket of the training stack."""

CHECKPOINT_PREFIX = "checkpoints"
"""Folder of the checkpoints, in the same bucket."""

OUTPUT_PREFIX = "output"
"""Folder of the trained models, in the same bucket."""


def stack_name(construct_id: str, cluster_name: str) -> str:
    """The name by which CloudFormation knows a stack of the app, from its id in the app, such as TrnClusterStack.

    The default cluster's is the id itself. That of another begins with the cluster's name, so that of no two clusters'
    names one is the beginning of the other.
    """
    return construct_id if cluster_name == DEFAULT_CLUSTER_NAME else f"{cluster_name}-{construct_id}"


def stack_names(cluster_name: str) -> Mapping[str, str]:
    """Names of a cluster's stacks in CloudFormation, by what trn:stacks calls them."""
    return {key: stack_name(construct_id, cluster_name) for key, construct_id in CONSTRUCT_IDS.items()}


_PRECOMPILE_GROUP = "-precompile"


def precompile_group_name(stack: str, cluster_name: str) -> str:
    """The Auto Scaling group of the host that compiles ahead. It begins as CloudFormation's names of a stack's do."""
    return f"{stack}-{cluster_name}{_PRECOMPILE_GROUP}"


def is_of_nodes(group_name: str) -> bool:
    """Whether an Auto Scaling group of a cluster is that of its nodes: CloudFormation's own names end in capitals."""
    return not group_name.endswith(_PRECOMPILE_GROUP)


def training_job_prefix(cluster_name: str) -> str:
    """What the names of a cluster's training jobs begin with, and of no other's: no cluster's name has two hyphens."""
    return f"{cluster_name}--"


FLEET_OUTPUT = "Fleet"
"""Output of the stack with what the nodes reported at the last deployment."""

ENDS_OUTPUT = "Ends"
"""Output of a stack that ends by itself: an instant, or the hours after the first deployment, such as `120h`."""

GROUP_OUTPUT = "Group"
RECORDS_OUTPUT = "NodeRecords"
"""Outputs of the stack that `trn nodes` reads: the Auto Scaling group, and the bucket of the node records."""
