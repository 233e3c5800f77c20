"""Every engine has a stack in this repository's app."""

from stacks import STACKS
from trainium_core.engines.registry import ENGINES
from trainium_core.naming import CONSTRUCT_IDS


def test_every_stack_has_an_engine_and_a_class() -> None:
    assert list(ENGINES) == list(CONSTRUCT_IDS) == list(STACKS)
