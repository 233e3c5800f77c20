"""Keys of the objects in the bucket of a cluster."""

from __future__ import annotations

MEMBERSHIP_KEY = "cluster.json"
"""The membership of the cluster: which nodes there are."""

CURRENT_JOB_KEY = "job.json"
"""The job that the nodes are given."""

PRECOMPILE_JOB_KEY = "precompile.json"
"""The job that a host which compiles ahead is given."""

RECORDS_PREFIX = "nodes"
"""Folder of the node records."""

LOGS_PREFIX = "logs"
"""Folder of the nodes' logs."""

SSH_KEYS_PREFIX = "ssh"
"""Folder of the nodes' public keys."""

USAGE_PREFIX = "usage"
"""Folder in which each node writes whether its NeuronCores are in use."""

PRECOMPILE_PREFIX = "precompile"
"""Folder of the reports of hosts that compile ahead."""

INTERNODE_PREFIX = "internode"
"""Folder in which the nodes agree on the test over all of them."""

JOBS_PREFIX = "jobs"
"""Folder of the jobs of `trn run`: source, logs, checkpoints and results of each."""


def instance_key(prefix: str, instance_id: str) -> str:
    """What an instance writes into a folder such as RECORDS_PREFIX."""
    return f"{prefix}/{instance_id}.json"
