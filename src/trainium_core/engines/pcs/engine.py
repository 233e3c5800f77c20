"""Slurm on AWS PCS: queues, priorities and retries, on nodes that start with jobs and end without."""

from trainium_core.engines.engine import Engine
from trainium_core.engines.pcs.costs import cost_items, cost_notes
from trainium_core.engines.pcs.warnings import pcs_warnings

PCS = Engine(key="pcs", cost_items=cost_items, cost_notes=cost_notes, warnings=pcs_warnings, can_sleep=False)
