"""The registry of engines names the classes of this repository's stacks."""

import pkgutil

import pytest
from aws_cdk import Stack

from trainium_core.engines.engine import Engine
from trainium_core.engines.registry import ENGINES


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_the_stack_class_of_an_engine_is_a_stack(engine: Engine) -> None:
    assert issubclass(pkgutil.resolve_name(engine.stack_class), Stack)
