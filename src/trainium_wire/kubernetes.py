"""The taints, the label and the annotations of a node of an EKS cluster."""

from __future__ import annotations

CLUSTER_LABEL = "trn/cluster"
"""Label with the name of the cluster, on its nodes, its JobSets and their pods."""

NEURON = "aws.amazon.com/neuron"
"""Key of the taint that Neuron's charts tolerate, and name of the resource of the device plugin (AWS Neuron
documentation, EKS; Amazon EKS User Guide, Neuron devices)."""

UNVERIFIED = "trn/unverified"
"""Key of the taint of a node that has not been verified in its current boot. The value is `true`."""

STATE_ANNOTATION = "trn/verification"
"""Annotation with the state of the verification: RUNNING and a time, `waiting: WHY`, `failed: REASON` or `verified`."""

RUNNING = "running since "
"""The state of a verification that has begun, before its time in the format of records."""

BOOT_ANNOTATION = "trn/verified-boot"
"""Annotation with the ID of the boot in which the node was verified."""
