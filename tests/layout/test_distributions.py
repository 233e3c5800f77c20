"""trainium_local can be published alone: a distribution of its own, which the product's wheel holds as well."""

import tomllib
from typing import Any

from tests.layout.repository import ROOT


def project(folder: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())


def test_the_product_requests_what_trainium_local_needs() -> None:
    product = project(".")["project"]
    extras = product["optional-dependencies"]
    own = product["dependencies"] + [*extras["cli"], *extras["local"]]
    assert set(project("local")["project"]["dependencies"]) <= set(own)


def test_both_are_built_by_the_same_tool() -> None:
    assert project("local")["build-system"] == project(".")["build-system"]
