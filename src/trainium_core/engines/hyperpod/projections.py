"""What HyperPod clusters derive from a plan."""

from trainium_core.engines.hyperpod.costs import cost_items, cost_notes
from trainium_core.engines.projections import Projections

PROJECTIONS = Projections(
    cost_items=cost_items,
    cost_notes=cost_notes,
)
