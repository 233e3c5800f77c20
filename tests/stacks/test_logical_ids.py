"""Logical IDs are stable, because a changed ID makes CloudFormation replace the resource.

released_logical_ids.txt lists the resources of the last release, one in each line: stack, logical ID, type. After a
release, UPDATE_SNAPSHOTS=1 rewrites it.
"""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import aws_iam as iam

from tests.constructs.plans import reserved
from tests.constructs.synth import EXISTING_NETWORK, Template, cluster_template, new_stack, synthesize
from tests.core.plans import EXISTING_EFS, EXISTING_LUSTRE
from tests.stacks.other_stacks import EVERY, other_template, stack_of
from tests.stacks.variants import VARIANTS
from tests.wheel.typed_uses import give_everything

RELEASED = Path(__file__).parent / "released_logical_ids.txt"

CLUSTERS: list[dict[str, Any]] = [
    {},
    {"egress": "nat-gateway"},
    {"capacity": "capacity-block", **reserved("capacity-block")},
    {"fsx_lustre": 1200, "efs": "new"},
    {**EXISTING_NETWORK, **EXISTING_LUSTRE, **EXISTING_EFS},
    {"ends": "5d", "notify_email": "a@b.example", "budget_usd": 500, "budget_action": "stop"},
]
"""Settings that together create every resource of TrnClusterStack."""


def resource_lines(stack: str, template: Template) -> Iterator[str]:
    """The lines of released_logical_ids.txt for a template."""
    for name, resource in template.resources().items():
        yield f"{stack} {name} {resource['Type']}"


@cache
def clusters() -> frozenset[str]:
    templates = (cluster_template(**settings) for settings in CLUSTERS)
    return frozenset(line for template in templates for line in resource_lines("TrnClusterStack", template))


def others() -> frozenset[str]:
    return frozenset(line for name in EVERY for line in resource_lines(stack_of(name).__name__, other_template(name)))


def of_an_app() -> frozenset[str]:
    """The logical IDs of constructs in another app, with everything that they create on request."""
    stack = new_stack()
    ec2_service: Any = iam.ServicePrincipal("ec2.amazonaws.com")
    give_everything(stack, ec2_service)
    ours = tuple(child.node.id for child in stack.node.children if type(child).__module__.startswith("trainium_cdk"))
    return frozenset(line for line in resource_lines("App", synthesize(stack)) if line.split()[1].startswith(ours))


def test_logical_ids_of_the_last_release_exist() -> None:
    now = clusters() | others() | of_an_app()
    if os.environ.get("UPDATE_SNAPSHOTS"):
        RELEASED.write_text("".join(f"{line}\n" for line in sorted(now)))
    assert [line for line in RELEASED.read_text().splitlines() if line not in now] == []


@pytest.mark.parametrize("name", VARIANTS)
def test_logical_ids_do_not_depend_on_settings(name: str) -> None:
    assert set(resource_lines("TrnClusterStack", cluster_template(**VARIANTS[name]))) - clusters() == set()
