"""What EC2 clusters derive from a plan."""

from trainium_core.engines.ec2.costs import cost_items
from trainium_core.engines.projections import Projections

PROJECTIONS = Projections(cost_items=cost_items)
