"""EC2: a cluster of instances in an Auto Scaling group, connected by EFA."""

from trainium_core.engines.ec2.checks import CHECKS
from trainium_core.engines.ec2.costs import cost_items
from trainium_core.engines.ec2.warnings import cluster_warnings
from trainium_core.engines.engine import Engine

EC2 = Engine(key="cluster", cost_items=cost_items, warnings=cluster_warnings, checks=CHECKS)
