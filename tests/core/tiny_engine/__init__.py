"""An engine as somebody adds one: test_new_engine.py puts this folder among the engines, and it into the registry."""

from trainium_core.engines.engine import Engine
from trainium_core.engines.tiny.settings import TinySettings

TINY = Engine(
    key="tiny",
    construct_id="TinyStack",
    stack_class="stacks.tiny_stack:TinyStack",
    settings=TinySettings,
    rules="trainium_core.engines.tiny.rules:RULES",
    warnings="trainium_core.engines.tiny.warnings:tiny_warnings",
    projections="trainium_core.engines.tiny.projections:PROJECTIONS",
    checks="trainium_core.engines.tiny.checks:CHECKS",
    audited="trainium_core.engines.tiny.audited:LISTINGS",
    workloads="trainium_core.engines.tiny.aws_workloads:WORKLOADS",
)
