"""Preflight requires the same bootstrap version as the stack, and reads it from the same SSM parameter."""

import json

from tests.constructs.synth import cluster_template
from trainium_core.facts import facts
from trainium_core.naming import DEFAULT_QUALIFIER


def test_required_version_equals_that_of_the_manifest() -> None:
    manifest = json.loads((cluster_template().file.parent / "manifest.json").read_text())
    needed = {
        artifact["properties"]["requiresBootstrapStackVersion"]
        for artifact in manifest["artifacts"].values()
        if "requiresBootstrapStackVersion" in artifact.get("properties", {})
    }
    assert needed == {facts()["bootstrap"]["version"]}


def test_version_is_read_from_the_parameter_of_the_template() -> None:
    parameter = cluster_template().json["Parameters"]["BootstrapVersion"]
    assert parameter["Default"] == facts()["bootstrap"]["version_parameter"].format(qualifier=DEFAULT_QUALIFIER)
