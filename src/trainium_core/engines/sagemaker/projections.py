"""What training jobs of SageMaker derive from a plan."""

from trainium_core.engines.projections import Projections
from trainium_core.engines.sagemaker.costs import cost_items, cost_notes
from trainium_core.engines.sagemaker.settings import SageMakerSettings
from trainium_core.plan import Plan


def _needs_vpc(plan: Plan) -> bool:
    return plan.section(SageMakerSettings).vpc


PROJECTIONS = Projections(
    cost_items=cost_items,
    cost_notes=cost_notes,
    needs_vpc=_needs_vpc,
)
