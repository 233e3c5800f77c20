"""Tags that Lambda functions, the template and the command line share."""

CLUSTER_TAG = "trn:cluster"
"""Tag on every resource of a plan; its value is the plan's cluster_name."""

EMPTY_AT_DELETE_TAG = "trn:empty-at-delete"
"""Tag of a bucket that may be emptied and deleted. It is removed first when a stack is updated to keep the bucket."""

NODE_STATE_TAG = "trn:node"
"""Tag on an instance: the state of its last record."""

NODE_REASON_TAG = "trn:reason"
"""Tag on an instance: why it failed or drains."""

STOPPED_TAG = "trn:stopped"
"""Tag on the topic of a pilot: why its clock keeps the nodes stopped."""

SPENT_TAG = "trn:spent"
"""Tag on the topic of a pilot: the budget that is spent, and since when."""

NOTIFIED_TAG = "trn:notified"
"""Tag on the topic of a pilot: the last notice about its end."""

IDLE_NOTICE_TAG = "trn:idle"
"""Tag on the topic of a pilot: the time in the last notice about unused nodes, at which they stop."""
