"""Names that templates, nodes and the command line share."""

import hashlib
from collections.abc import Mapping

from trainium_core.facts import facts

STACK_NAME = "TrnClusterStack"
"""The ID of the cluster's stack in the app, and the CloudFormation name of the default cluster's stack."""

CONSTRUCT_IDS: Mapping[str, str] = {
    "cluster": STACK_NAME,
    "sagemaker": "SageMakerTrainingStack",
    "pcs": "PcsStack",
    "eks": "EksJobsStack",
}
"""The stack IDs in the app, by their key in trn:stacks, in the order of creation and display."""

SLURM = "slurm"
"""An alias of `pcs` in the engine option of a job (`--on`)."""

DEFAULT_CLUSTER_NAME = "trn-pilot"
"""The default cluster name."""

NODE_RECORDS_BUCKETS = "trn-node-records"
"""The beginning of the names of buckets with the records of nodes of EKS clusters (data/permissions.toml)."""

CACHE_PREFIX = "neuron-compile-cache"
"""The S3 prefix of the compile cache in its bucket."""

ASLEEP_PARAMETER = "Asleep"
"""The parameter of the cluster's stack that is `true` while the cluster sleeps, else `false`."""

SET_ASLEEP_FUNCTION = "TrainiumCdkSetAsleep"
"""Logical ID of the function that sets the parameter `Asleep`."""

BOOTSTRAP_STACK_NAME = "CDKToolkit"
"""The stack that `cdk bootstrap` creates."""

DEFAULT_QUALIFIER: str = facts()["bootstrap"]["qualifier"]
"""The part of the names of bootstrap resources that `cdk bootstrap --qualifier` changes."""

SESSION_SERVICES = ("ssm", "ssmmessages")
"""The services whose endpoints Session Manager needs (Systems Manager documentation, VPC endpoints)."""

SOURCE_PREFIX = "source"
"""The S3 prefix of uploaded sources of training jobs, in the bucket of SageMakerTrainingStack."""

CHECKPOINT_PREFIX = "checkpoints"
"""The S3 prefix of checkpoints, in the bucket of SageMakerTrainingStack."""

OUTPUT_PREFIX = "output"
"""The S3 prefix of trained models, in the bucket of SageMakerTrainingStack."""


def stack_name(construct_id: str, cluster_name: str) -> str:
    """The CloudFormation name of a stack, from its ID in the app, such as TrnClusterStack.

    A stack of the default cluster has its ID as its name. The names of other clusters' stacks begin with the name of
    the cluster, so that no stack name of one cluster is a prefix of a stack name of another.
    """
    return construct_id if cluster_name == DEFAULT_CLUSTER_NAME else f"{cluster_name}-{construct_id}"


def stack_names(cluster_name: str) -> Mapping[str, str]:
    """The CloudFormation names of a cluster's stacks, by their key in trn:stacks."""
    return {key: stack_name(construct_id, cluster_name) for key, construct_id in CONSTRUCT_IDS.items()}


def job_id_prefix(cluster_name: str) -> str:
    """The unique prefix of the IDs of a cluster's SageMaker jobs: no cluster name contains two hyphens in a row."""
    return f"{cluster_name}--"


BATCH_NAME_PREFIX = "AWSBatch"
"""AWS Batch names a training job `AWSBatch`, the name in the request and 32 hexadecimal digits. SageMaker allows 63
characters, so 23 remain for the name in the request (AWS Batch User Guide, Getting started with AWS Batch on SageMaker
AI; botocore, TrainingJobName)."""

_CLUSTER_DIGITS = 7


def training_job_name_part(cluster_name: str) -> str:
    """The part that identifies the cluster in the names of its training jobs; the whole name would be too long."""
    return hashlib.sha256(cluster_name.encode()).hexdigest()[:_CLUSTER_DIGITS] + "-"


def training_job_prefix(cluster_name: str) -> str:
    """The prefix of the names of a cluster's training jobs in SageMaker."""
    return BATCH_NAME_PREFIX + training_job_name_part(cluster_name)


FLEET_OUTPUT = "Fleet"
"""Stack output with a sentence about the fleet after the last deployment."""

VERIFIED_NODES_OUTPUT = "VerifiedNodes"
"""Stack output with the number of nodes that the last deployment verified: 0 unless all nodes are ready."""

ENDS_OUTPUT = "Ends"
"""Stack output with the end of the pilot: an instant, or hours after the first deployment, such as `120h`."""

GROUP_OUTPUT = "Group"
RECORDS_OUTPUT = "NodeRecords"
"""Stack outputs for people and scripts: the Auto Scaling group, and the bucket of the node records."""

PCS_CLUSTER_OUTPUT = "SlurmCluster"
PCS_GROUP_OUTPUT = "SlurmNodes"
"""Outputs of PcsStack: the IDs of its cluster and its compute node group."""
