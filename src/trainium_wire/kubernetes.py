"""The taint and the annotations of a node of an EKS cluster."""

from __future__ import annotations

UNVERIFIED = "trn/unverified"
"""Key of the taint of a node that has not been verified in its current boot. The value is `true`."""

STATE_ANNOTATION = "trn/verification"
"""Annotation with the state of the verification: `running`, `waiting: WHY`, `failed: REASON` or `verified`."""

BOOT_ANNOTATION = "trn/verified-boot"
"""Annotation with the ID of the boot in which the node was verified."""
