"""Names that the template, the nodes and the command line must agree on."""

STACK_NAME = "TrnClusterStack"

CACHE_PREFIX = "neuron-compile-cache"
"""Folder of the compile cache in its bucket."""

RECORDS_PREFIX = "nodes"
"""Folder of the node records in the cluster's own bucket."""

LOGS_PREFIX = "logs"
"""Folder of the nodes' logs, beside the records."""

SSH_KEYS_PREFIX = "ssh"
"""Folder of the nodes' public keys, beside the records."""

JOBS_PREFIX = "jobs"
"""Folder of the jobs of `trn run`, beside the records: source, logs, checkpoints and results of each."""

CURRENT_JOB_KEY = "job.json"
"""Key of the job that the nodes are given, beside the records."""

INTERNODE_PREFIX = "internode"
"""Folder in which the nodes agree on the test over all of them, beside the records."""

ASLEEP_PARAMETER = "Asleep"
"""Parameter of the stack: `true` while the cluster sleeps, else `false`."""

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


def training_job_prefix(cluster_name: str) -> str:
    """What the names of a cluster's training jobs begin with. Those of a longer-named cluster may, too."""
    return f"{cluster_name}-"


FLEET_OUTPUT = "Fleet"
"""Output of the stack with what the nodes reported at the last deployment."""

GROUP_OUTPUT = "Group"
RECORDS_OUTPUT = "NodeRecords"
"""Outputs of the stack that `trn nodes` reads: the Auto Scaling group, and the bucket of the node records."""
