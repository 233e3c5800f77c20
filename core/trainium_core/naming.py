"""Names that the template, the nodes and the command line must agree on."""

STACK_NAME = "TrnClusterStack"

CLUSTER_TAG = "trn:cluster"
"""Tag on everything a plan makes; its value is the plan's cluster_name."""

CACHE_PREFIX = "neuron-compile-cache"
"""Folder of the compile cache in its bucket."""

RECORDS_PREFIX = "nodes"
"""Folder of the node records in the cluster's own bucket."""

LOGS_PREFIX = "logs"
"""Folder of the nodes' logs, beside the records."""

ROSTER_KEY = "cluster.json"
"""Key of the roster, beside the records."""

NODE_STATE_TAG = "trn:node"
"""Tag on an instance: the state of its last record."""

NODE_REASON_TAG = "trn:reason"
"""Tag on an instance: why it failed or drains."""

BOOTSTRAP_STACK_NAME = "CDKToolkit"
"""Stack that `cdk bootstrap` makes."""

SESSION_SERVICES = ("ssm", "ssmmessages")
"""Services that Session Manager needs an endpoint of (Systems Manager documentation, VPC endpoints)."""
