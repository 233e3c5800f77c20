"""docs/reference/constructs.md lists what `trainium_cdk` and `trainium_core` export; every parameter is described."""

import inspect
import re
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
def test_every_parameter_of_a_construct_is_described(name: str) -> None:
    construct: Any = getattr(trainium_cdk, name)
    described = f"{construct.__doc__}\n{construct.__init__.__doc__}"
    parameters = set(inspect.signature(construct.__init__).parameters) - GIVEN_BY_EVERY_CONSTRUCT
    if "kwargs" in parameters:  # jsii's own, of a construct that adds nothing
        return
    assert [one for one in parameters if not re.search(rf"(^|[\s,]){one}\b[^:\n]*:", described)] == []


@pytest.mark.parametrize("name", trainium_cdk.__all__)
def test_every_public_attribute_of_a_construct_is_described(name: str) -> None:
    own = {key: value for key, value in vars(getattr(trainium_cdk, name)).items() if not key.startswith("_")}
    assert [key for key, value in own.items() if not inspect.getdoc(value)] == []
