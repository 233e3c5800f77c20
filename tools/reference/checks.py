"""The subjects that `trn preflight` and a node check."""

import inspect
from collections.abc import Callable
from typing import Any

from tools.reference.markdown import code, table, text
from trainium_core.engines.registry import ENGINES, engines_with_check
from trainium_core.plan.node_checks import NODE_CHECKS
from trainium_core.preflight.runner import CHECKS


def preflight_checks() -> str:
    rows = ((code(name), _finds_out(check), _stacks(name)) for name, check in CHECKS.items())
    return table(("check", "finds out", "stacks"), rows)


def _stacks(check: str) -> str:
    with_it = engines_with_check(check)
    return ", ".join(key for key in ENGINES if key in with_it) or "all"


def node_checks() -> str:
    return table(("check", "passes if"), ((code(name), text(finds_out)) for name, finds_out in NODE_CHECKS.items()))


def _finds_out(check: Callable[..., Any]) -> str:
    """The first sentence of the module of a check; each subject has one module."""
    return text((inspect.getdoc(inspect.getmodule(check)) or "").partition("\n")[0])
