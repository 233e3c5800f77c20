"""docs/reference/constructs.md lists what `trainium_cdk` and `trainium_core` export; every parameter is described."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import trainium_cdk
import trainium_core
from tests.constructs.synth import ROOT

EXPORTED: dict[str, Any] = {
    name: getattr(package, name) for package in (trainium_cdk, trainium_core) for name in package.__all__
}
GIVEN_BY_EVERY_CONSTRUCT = {"self", "scope", "construct_id"}


def test_the_page_lists_every_exported_name_with_the_first_sentence_of_its_docstring() -> None:
    page = (ROOT / "docs" / "reference" / "constructs.md").read_text()
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE))
    assert listed == {name: (inspect.getdoc(one) or "").partition("\n")[0] for name, one in EXPORTED.items()}


@pytest.mark.parametrize("name", trainium_cdk.__all__)
def test_every_parameter_of_a_construct_is_described_with_its_default(name: str) -> None:
    construct: Any = getattr(trainium_cdk, name)
    assert undescribed(construct.__init__, f"{construct.__doc__}\n{construct.__init__.__doc__}") == []


@pytest.mark.parametrize("name", trainium_cdk.__all__)
def test_every_public_attribute_of_a_construct_is_described(name: str) -> None:
    for attribute, value in public_attributes(name):
        assert inspect.getdoc(value), attribute


@pytest.mark.parametrize("name", trainium_cdk.__all__)
def test_every_parameter_of_a_method_is_described_with_its_default(name: str) -> None:
    methods = {attribute: getattr(value, "__func__", value) for attribute, value in public_attributes(name)}
    for attribute, method in methods.items():
        if inspect.isfunction(method):
            assert undescribed(method, inspect.getdoc(method) or "") == [], attribute


@pytest.mark.parametrize("name", trainium_cdk.__all__)
def test_what_refuses_parameters_says_so(name: str) -> None:
    construct: Any = getattr(trainium_cdk, name)
    refuses = re.search(r"\b(refuse|check_\w+|plan_of)\(", inspect.getsource(construct))
    assert not refuses or "Raises " in f"{construct.__doc__}\n{construct.__init__.__doc__}"


def public_attributes(name: str) -> Iterator[tuple[str, Any]]:
    """What a class and those of this package that it inherits from have, by name."""
    parts: tuple[type, ...] = getattr(trainium_cdk, name).__mro__
    for part in parts:
        if part.__module__.partition(".")[0] == trainium_cdk.__name__:
            yield from ((f"{part.__name__}.{key}", one) for key, one in vars(part).items() if not key.startswith("_"))


def undescribed(function: Any, text: str) -> list[str]:
    """The parameters that a docstring does not describe, and those with a default of which it does not say that."""
    parameters = inspect.signature(function).parameters
    if "kwargs" in parameters:  # jsii's own, of a construct that adds nothing
        return []
    found = {name: re.search(rf"(?:^|[\s,]){name}\b[^:\n]*:", text) for name in parameters}
    starts = sorted(match.start() for match in found.values() if match)
    return [
        name
        for name, parameter in parameters.items()
        if name not in GIVEN_BY_EVERY_CONSTRUCT
        and (
            (match := found[name]) is None
            or (
                parameter.default is not inspect.Parameter.empty
                and "Default:"
                not in text[match.start() : min((one for one in starts if one > match.start()), default=None)]
            )
        )
    ]
