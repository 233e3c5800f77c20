"""What stands between a plan and its deployment in one account: findings, each with what to do about it."""

from trainium_core.preflight.finding import Finding, Verdict, verdict
from trainium_core.preflight.runner import CHECKS, preflight
from trainium_runtime.answer import Answer, Outcome

__all__ = ["CHECKS", "Answer", "Finding", "Outcome", "Verdict", "preflight", "verdict"]
