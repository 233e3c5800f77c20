"""Keys of the objects in the bucket of a cluster."""

from __future__ import annotations

import re

MEMBERSHIP_KEY = "cluster.json"
"""The membership of the cluster."""

CURRENT_JOB_KEY = "job.json"
"""The job that the nodes run."""

RECORDS_PREFIX = "nodes"
"""Folder of the node records."""

LOGS_PREFIX = "logs"
"""Folder of the nodes' logs."""

SSH_KEYS_PREFIX = "ssh"
"""Folder of the nodes' public keys."""

USAGE_PREFIX = "usage"
"""Folder of the nodes' usage reports."""

INTERNODE_PREFIX = "internode"
"""Folder in which nodes coordinate the test over all nodes."""

JOBS_PREFIX = "jobs"
"""Folder of the jobs of `trn run`: source, logs, checkpoints and results of each."""


def instance_key(prefix: str, name: str) -> str:
    """The key of an instance's object in a folder such as RECORDS_PREFIX, by its `instance_name`."""
    return f"{prefix}/{name}.json"


def instance_name(instance_id: str, role_id: str | None) -> str:
    """The name of an instance's objects.

    It is the instance's `aws:userid` in IAM, so that a policy can limit each instance to its own objects. Without a
    role ID, which a stack cannot read for an imported role, it is the instance ID.
    """
    return f"{role_id}:{instance_id}" if role_id else instance_id


def key_instance(key: str, prefix: str) -> str | None:
    """The ID of the instance that an object in a folder belongs to; None for any other key."""
    match = re.fullmatch(rf"{re.escape(prefix)}/(?:[A-Z0-9]{{16,128}}:)?(i-[0-9a-z]+)\.(?:json|log)", key)
    return match[1] if match else None
