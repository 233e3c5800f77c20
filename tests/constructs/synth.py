"""Synthesises constructs and plans into JSON templates."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from aws_cdk import App, Environment, Stack

from stacks.trn_cluster_stack import TrnClusterStack
from tests.shared import made_once
from trainium_core import Plan
from trainium_core.naming import STACK_NAME

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
REGION = "us-west-2"
PLAN: Mapping[str, Any] = {"instance_type": "trn1.32xlarge", "region": REGION, "nodes": 2}
EXISTING_NETWORK: Mapping[str, Any] = {
    "vpc_id": "vpc-0123456789abcdef0",
    "subnet_id": "subnet-0123456789abcdef0",
    "route_table_id": "rtb-0123456789abcdef0",
}

_assemblies = tempfile.TemporaryDirectory(prefix="trn-synth-")


class Template:
    """A synthesised template. `file` is its path, in the folder of the cloud assembly with its assets."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.json: Json = json.loads(file.read_text())

    def resources(self, resource_type: str | None = None) -> dict[str, Json]:
        """Resources by logical ID: of one type, or all."""
        resources: dict[str, Json] = self.json.get("Resources", {})
        return {name: r for name, r in resources.items() if resource_type in (None, r["Type"])}

    def properties(self, resource_type: str) -> Json:
        """The properties of the only resource of a type."""
        (resource,) = self.resources(resource_type).values()
        return resource["Properties"]

    def logical_id(self, resource_type: str) -> str:
        """The logical ID of the only resource of a type."""
        (logical_id,) = self.resources(resource_type)
        return logical_id

    def before(self, logical_id: str) -> set[str]:
        """Logical IDs of everything that CloudFormation creates before a resource, and deletes after it."""
        resources = self.resources()
        earlier: set[str] = set()
        pending = [logical_id]
        while pending:
            resource = resources[pending.pop()]
            new = ({*as_list(resource.get("DependsOn", [])), *references(resource)} & resources.keys()) - earlier
            earlier |= new
            pending += new
        return earlier


def feature_flags() -> Json:
    """The context of cdk.json without the settings of plans, which controls how the CDK synthesises."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    return {key: value for key, value in context.items() if not key.startswith("trn:")}


def new_app(folder: Path | None = None, *, validated: bool = False) -> App:
    """An app with the feature flags of this repository.

    Args:
        folder: Output folder. Default: a new one.
        validated: Whether CloudFormation Validate runs at synthesis, as it does in every app by default. It takes
            seconds in each process, so only the tests in tests/stacks do so, for every kind of plan.
    """
    folder = folder or Path(tempfile.mkdtemp(dir=_assemblies.name))
    return App(context=feature_flags(), outdir=str(folder), builtin_cloud_formation_validation=validated)


def new_stack(*, validated: bool = False) -> Stack:
    """An empty stack for a construct.

    Args:
        validated: As for `new_app`.
    """
    return Stack(new_app(validated=validated), "Stack", env=Environment(region=REGION))


def synthesize(stack: Stack) -> Template:
    """The template of a stack. Raises RuntimeError if a validation refuses it."""
    app = stack.node.root
    assert isinstance(app, App)
    return Template(Path(app.synth().directory) / stack.template_file)


def a_plan(**settings: Any) -> Plan:
    """A plan, by default of two trn1.32xlarge in us-west-2, with these settings."""
    return Plan.of(**{**PLAN, **settings})


@cache
def cluster_template(**settings: Any) -> Template:
    """The template of TrnClusterStack for `a_plan`, synthesised once for each set of settings."""
    return template_of(TrnClusterStack, STACK_NAME, settings)


def template_of(kind: Callable[..., Stack], construct_id: str, settings: Mapping[str, Any]) -> Template:
    """The template of a stack of a kind for `a_plan` with these settings, synthesised once in a run of pytest."""

    def make(folder: Path) -> None:
        app = new_app(folder)
        kind(app, construct_id, plan=a_plan(**settings))
        app.synth()

    name = f"{kind.__module__} {kind.__qualname__} {construct_id} {sorted(settings.items())}"
    (file,) = made_once(name, make).glob("*.template.json")
    return Template(file)


def plan_template(plan: Plan) -> Template:
    """The template of TrnClusterStack for a plan."""
    return synthesize(TrnClusterStack(new_app(), STACK_NAME, plan=plan))


def statements(template: Template) -> Iterator[Json]:
    """Every statement of the policies of roles, whether inline or separate. Managed policies are left out."""
    for policy in template.resources("AWS::IAM::Policy").values():
        yield from policy["Properties"]["PolicyDocument"]["Statement"]
    for role in template.resources("AWS::IAM::Role").values():
        for policy in role["Properties"].get("Policies", []):
            yield from policy["PolicyDocument"]["Statement"]


def granted(policy_statements: Iterable[Json]) -> set[tuple[str, str]]:
    """Each allowed action with each of its resources."""
    return {
        (action, as_text(resource))
        for statement in policy_statements
        for action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    }


def as_list(value: Any) -> list[Any]:
    """A value as a list: the CDK writes some lists of one as a single value."""
    return value if isinstance(value, list) else [value]


def as_text(value: Any) -> str:
    """A value as text, with `${LogicalId}` and `${LogicalId.Attribute}` for what CloudFormation fills in."""
    match value:
        case str():
            return value
        case {"Ref": name}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(as_text(part) for part in parts)
        case {"Fn::Base64": text} | {"Fn::Sub": text}:
            return as_text(text)
        case {"Fn::Select": _}:
            return "${a part}"
        case _:
            raise ValueError(f"not a text: {value!r}")


def references(value: Any) -> set[str]:
    """Every name that a part of a template refers to by Ref or Fn::GetAtt."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), _]}:
            return {name}
        case dict():
            return {name for part in value.values() for name in references(part)}
        case list():
            return {name for part in value for name in references(part)}
        case _:
            return set()
