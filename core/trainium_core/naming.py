"""Names that the template, the nodes and the command line must agree on."""

STACK_NAME = "TrnClusterStack"

CLUSTER_TAG = "trn:cluster"
"""Tag on everything a plan makes; its value is the plan's cluster_name."""

CACHE_PREFIX = "neuron-compile-cache"
"""Folder of the compile cache in its bucket."""

RECORDS_PREFIX = "nodes"
"""Folder of the node records in the cluster's own bucket."""

BOOTSTRAP_STACK_NAME = "CDKToolkit"
"""Stack that `cdk bootstrap` makes."""

SESSION_SERVICES = ("ssm", "ssmmessages")
"""Services that Session Manager needs an endpoint of (Systems Manager documentation, VPC endpoints)."""
