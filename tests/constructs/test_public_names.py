"""docs/reference/constructs.md lists the exports of `trainium_cdk` and `trainium_core`, and docstrings describe the
parameters of every construct.
"""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import trainium_cdk
import trainium_core
from tests.constructs.synth import ROOT, new_app
from tests.layout.repository import PACKAGES, python_files
from tests.wheel.every_construct import every_construct
from trainium_core.plan.settings_by_key import SETTINGS

PLANS = {"Plan", "PlanError", "plan_from_cdk"}
"""Exports for plans that are not constructs."""
EXPORTED: dict[str, Any] = {
    name: getattr(package, name) for package in (trainium_cdk, trainium_core) for name in package.__all__
}
CONSTRUCTS = sorted(set(trainium_cdk.__all__) - PLANS)
PARAMETERS = {
    "cache_expiration_days": "expiration",
    "node_replacements": "max_replacements",
    "node_timeout_minutes": "ready_timeout",
    "root_volume_gib": "root_volume_size",
    "vpc_cidr": "cidr",
    "warning_hours": "warn_before",
}
"""Parameters by the settings with the same default, if their names differ."""
WITHOUT_SETTING = {"capacity", "cluster_name"}
"""Parameters whose defaults are documented as objects of the CDK, or in words."""
WITH_OTHER_DEFAULT = {"NeuronNodeGroup.secondary_interface_type"}
"""Parameters with another default than the setting of plans: pods of EKS need the addresses of the subnet."""
OF_EVERY_CONSTRUCT = {"self", "scope", "construct_id"}


def test_no_other_module_has_public_names() -> None:
    of_wheel = [file for file in python_files() if set(file.parts[:2]) & PACKAGES.keys()]
    promising = {str(file) for file in of_wheel if re.search("^__all__", (ROOT / file).read_text(), re.MULTILINE)}
    assert promising == {"constructs/trainium_cdk/__init__.py", "src/trainium_core/__init__.py"}


def test_page_lists_exported_names_with_their_first_sentence() -> None:
    page = (ROOT / "docs" / "reference" / "constructs.md").read_text()
    listed = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE))
    assert listed == {name: (inspect.getdoc(value) or "").partition("\n")[0] for name, value in EXPORTED.items()}


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_parameters_of_constructs_are_described_with_defaults(name: str) -> None:
    construct: Any = getattr(trainium_cdk, name)
    assert undescribed(construct.__init__, f"{construct.__doc__}\n{construct.__init__.__doc__}") == []


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_public_attributes_of_constructs_are_described(name: str) -> None:
    for attribute, value in public_attributes(name):
        assert inspect.getdoc(value), attribute


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_parameters_of_methods_are_described_with_defaults(name: str) -> None:
    methods = {attribute: getattr(value, "__func__", value) for attribute, value in public_attributes(name)}
    for attribute, method in methods.items():
        if inspect.isfunction(method):
            assert undescribed(method, inspect.getdoc(method) or "") == [], attribute


def test_app_with_every_construct_is_synthesised() -> None:
    app = new_app()
    every_construct(app)
    app.synth()


def test_app_with_every_construct_uses_every_export() -> None:
    used = set(re.findall(r"\btrn\.(\w+)", (ROOT / "tests/wheel/every_construct.py").read_text()))
    assert set(trainium_cdk.__all__) - used == {"plan_from_cdk"}


def test_documented_default_equals_that_of_the_setting() -> None:
    """Docstrings are written by hand, so this compares them with the setting that the parameter becomes."""
    defaults = {f"{name}.{parameter}": pair for name in CONSTRUCTS for parameter, pair in defaults_of(name)}
    of_several = {
        "ClusterNetwork.cidr",
        "NeuronFleet.ready_timeout",
        "QuotaCheck.nodes",
    }
    assert of_several <= set(defaults)
    for parameter, (documented, actual) in defaults.items():
        if parameter in WITH_OTHER_DEFAULT:
            assert documented.startswith("efa-only")
            continue
        assert re.match(rf"{re.escape(actual)}(?![\w-])", documented), parameter


def defaults_of(name: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Documented and actual default by parameter, if the documented one is a value."""
    construct: Any = getattr(trainium_cdk, name)
    text = f"{construct.__doc__}\n{construct.__init__.__doc__}"
    settings = {PARAMETERS.get(key, key): setting.default for key, setting in SETTINGS.items()}
    for parameter in inspect.signature(construct.__init__).parameters:
        documented = re.search(rf"(?:^|\s){parameter}: [^:]*?Default:\s+([^\n]*)", text)
        if documented and parameter not in WITHOUT_SETTING and isinstance(settings.get(parameter), str | int):
            yield parameter, (documented[1], str(settings[parameter]))


def public_attributes(name: str) -> Iterator[tuple[str, Any]]:
    """The public attributes of a class and its base classes in this package, by name."""
    parts: tuple[type, ...] = getattr(trainium_cdk, name).__mro__
    for part in parts:
        if part.__module__.partition(".")[0] == trainium_cdk.__name__:
            yield from ((f"{part.__name__}.{key}", v) for key, v in vars(part).items() if not key.startswith("_"))


def undescribed(function: Any, text: str) -> list[str]:
    """The parameters that a docstring does not describe, and those whose default it does not state."""
    parameters = inspect.signature(function).parameters
    if "kwargs" in parameters:  # From jsii, for a construct without its own constructor.
        return []
    matches = {name: re.search(rf"(?:^|[\s,]){name}\b[^:\n]*:", text) for name in parameters}
    starts = sorted(match.start() for match in matches.values() if match)
    problems = list[str]()
    for name, parameter in parameters.items():
        match = matches[name]
        end = next((start for start in starts if match and start > match.start()), None)
        without_default = parameter.default is not inspect.Parameter.empty and (
            match is None or "Default:" not in text[match.start() : end]
        )
        if name not in OF_EVERY_CONSTRUCT and (match is None or without_default):
            problems.append(name)
    return problems
