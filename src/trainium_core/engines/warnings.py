"""What the author of a plan should know of the stacks of trn:stacks."""

import pkgutil
from collections.abc import Mapping
from typing import cast

from trainium_core.engines.registry import CLUSTER, ENGINES
from trainium_core.plan import Plan
from trainium_core.plan.warnings import merged


def plan_warnings(plan: Plan) -> Mapping[str, str]:
    """Warnings by setting: of the cluster, whose plan it is in any case, and of the stacks beside it."""
    engines = [ENGINES[key] for key in dict.fromkeys((CLUSTER.key, *plan.stacks))]
    found = [cast(Mapping[str, str], pkgutil.resolve_name(engine.warnings)(plan)) for engine in engines]
    return merged(warning for warnings in found for warning in warnings.items())
