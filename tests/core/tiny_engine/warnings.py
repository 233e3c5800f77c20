"""What the author of a plan for the tiny engine should know."""

from collections.abc import Mapping

from trainium_core.engines.tiny.settings import TinySettings
from trainium_core.plan import Plan


def tiny_warnings(plan: Plan) -> Mapping[str, str]:
    return {"tiny_size": f"{plan.section(TinySettings).size} GiB are few"}
