"""The excerpt of the Service Authorization Reference against the newer one that cfn-lint brings."""

import pytest
from cfnlint.helpers import load_resource

from trainium_core.permissions.roles import action, known_actions

NEWER = load_resource("cfnlint.data.AdditionalSpecs", "Policies.json")


def newer_types(name: str) -> set[str]:
    prefix, _, short = name.partition(":")
    return {kind.lower() for kind in NEWER[prefix]["Actions"][short.lower()].get("Resources", [])}


@pytest.mark.parametrize("prefix", sorted({name.partition(":")[0] for name in known_actions()}))
def test_actions_are_on_the_types_of_the_newer_reference(prefix: str) -> None:
    for name in [name for name in known_actions() if name.startswith(f"{prefix}:")]:
        found = action(name)
        if not found.any_type:
            assert {kind.lower() for kind in (*found.required, *found.optional)} == newer_types(name), name
