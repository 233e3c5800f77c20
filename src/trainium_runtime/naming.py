"""Names that Lambda functions, the template and the command line share."""

FLEET_READINESS = "Custom::TrnFleetReadiness"
"""Resource type of the custom resource that waits until all nodes of a fleet are verified."""

CLUSTER_TAG = "trn:cluster"
"""Tag on the resources of a cluster that support tags; its value is the name of the cluster."""

PROJECT_TAG = "trn:project"
"""Tag on the stacks of a plan: the ID of the project that deployed them last."""

EMPTY_AT_DELETE_TAG = "trn:empty-at-delete"
"""Tag on a bucket; `true` allows emptying and deleting it. An update that keeps the bucket first changes the tag."""

NODE_STATE_TAG = "trn:node"
"""Tag on an instance: the state of its last record."""

NODE_REASON_TAG = "trn:reason"
"""Tag on an instance: why it failed or drains; empty for a verified node."""

RECORDS_TAG = "trn:records"
"""Tag on an instance of an EKS node group: the bucket of its record."""

EKS_CLUSTER_TAG, EKS_GROUP_TAG = "eks:cluster-name", "eks:nodegroup-name"
"""Tags that EKS sets on the instances and Auto Scaling groups of node groups."""

STOPPED_TAG = "trn:stopped"
"""Tag on the topic of a pilot: why the controller keeps the nodes stopped."""

SPENT_TAG = "trn:spent"
"""Tag on the topic of a pilot: the budget that is spent, and since when."""

NOTIFIED_TAG = "trn:notified"
"""Tag on the topic of a pilot: the last notice about its end."""

IDLE_NOTICE_TAG = "trn:idle"
"""Tag on the topic of a pilot: the time in the last notice about unused nodes, at which they stop."""

METRICS_EVENT = "metrics"
"""Key of the event that has the controller print metrics. The value is the time for which the run was scheduled."""
