"""What a cluster left in an account, and what that costs. Everything here only reads."""

from trainium_core.audit.outcome import Audit, Audited, Group, NotRead, Verdict
from trainium_core.audit.runner import audit

__all__ = ["Audit", "Audited", "Group", "NotRead", "Verdict", "audit"]
