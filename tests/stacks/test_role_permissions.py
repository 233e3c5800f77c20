"""Every statement of every role against the Service Authorization Reference, and against the code that uses the role.

These tests show that a permission is on resource types that its action supports, and on all that a request names. They
do not show that AWS's services require no more. tests/deploy runs the functions and CloudFormation with these roles on
the embedded AWS, which enforces them.
"""

import ast
import json
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

import boto3
import pytest
from botocore import xform_name

import trainium_runtime
from tests.constructs.plans import reserved
from tests.constructs.synth import Json, Template, as_list, as_text, cluster_template
from tests.core.service_authorization import arn_format, dependent_actions
from tests.stacks.other_stacks import other_template
from trainium_core.permissions.roles import action, handler_actions
from trainium_runtime.launch_template_version import RESOURCE_TYPE

NAMED_BESIDES = {
    "ec2:CreateNetworkInterface": ("security-group",),
    "ec2:ModifyNetworkInterfaceAttribute": ("instance", "security-group"),
    "sagemaker:CreateTrainingJob": ("reserved-capacity", "training-plan"),
}
"""Resource types that the reference calls optional, but that requests with the roles of these templates name."""

ARNS = {
    "AWS::IAM::Role": "arn:aws:iam::123456789012:role/{}",
    "AWS::Lambda::Function": "arn:aws:lambda:us-west-2:123456789012:function:{}",
    "AWS::Logs::LogGroup": "arn:aws:logs:us-west-2:123456789012:log-group:{}:*",
    "AWS::PCS::Cluster": "arn:aws:pcs:us-west-2:123456789012:cluster/{}",
    "AWS::PCS::ComputeNodeGroup": "arn:aws:pcs:us-west-2:123456789012:cluster/c/computenodegroup/{}",
    "AWS::S3::Bucket": "arn:aws:s3:::{}",
    "AWS::SNS::Topic": "arn:aws:sns:us-west-2:123456789012:{}",
}
"""The ARN of a resource, by its type. `{}` stands for the logical ID."""

PSEUDO_PARAMETERS = {
    "AWS::Partition": "aws",
    "AWS::Region": "us-west-2",
    "AWS::AccountId": "123456789012",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::StackId": "arn:aws:cloudformation:us-west-2:123456789012:stack/S/0",
}

CLUSTERS: dict[str, Json] = {
    "cluster": {
        "ends": "5d",
        "ends_action": "destroy",
        "budget_usd": 500,
        "internode_ssh": True,
        "job_inputs": ("s3://their-data/tokens",),
        "job_checkpoints": "s3://our-models/checkpoints",
        "job_secrets": ("arn:aws:ssm:us-west-2:123456789012:parameter/token",),
    },
    "cluster-in-a-capacity-block": {"capacity": "capacity-block", **reserved("capacity-block")},
}
NAMES = [*CLUSTERS, "training-own-vpc", "training-key", "pcs-spot", "pcs-image"]
"""Templates that together have every role."""


def template_of(name: str) -> Template:
    return cluster_template(**CLUSTERS[name]) if name in CLUSTERS else other_template(name)


def filled_in(template: Template, resource: str) -> str:
    """A `Resource` of a statement, with plausible values for what CloudFormation fills in."""
    for logical_id, definition in template.resources().items():
        kind = definition["Type"]
        arn = ARNS.get(kind, "{}").format(logical_id)
        resource = resource.replace(f"${{{logical_id}.Arn}}", arn)
        if kind == RESOURCE_TYPE:
            script = as_text(definition["Properties"]["NodeScript"])
            resource = resource.replace(f"${{{logical_id}.NodeScript}}", script)
        resource = resource.replace(f"${{{logical_id}}}", arn if kind == "AWS::SNS::Topic" else logical_id)
    for key, value in PSEUDO_PARAMETERS.items():
        resource = resource.replace(f"${{{key}}}", value)
    return resource


def roles(template: Template) -> dict[str, list[Json]]:
    """The statements of each role, by its logical ID, with resources as ARNs."""
    found: dict[str, list[Json]] = {name: [] for name in template.resources("AWS::IAM::Role")}
    for policy in template.resources("AWS::IAM::Policy").values():
        for role in policy["Properties"]["Roles"]:
            found[role["Ref"]] += policy["Properties"]["PolicyDocument"]["Statement"]
    return {
        name: [
            {**entry, "Resource": [filled_in(template, as_text(resource)) for resource in as_list(entry["Resource"])]}
            for entry in statements
        ]
        for name, statements in found.items()
    }


def permissions(template: Template) -> Iterator[tuple[str, str, list[str]]]:
    """Each role, each of its actions, and all resources on which the action is allowed."""
    for role, statements in roles(template).items():
        resources: dict[str, list[str]] = {}
        for statement in statements:
            for name in as_list(statement["Action"]):
                resources.setdefault(name, []).extend(statement["Resource"])
        for name, allowed in resources.items():
            yield role, name, allowed


def actions_of_roles(template: Template) -> dict[str, set[str]]:
    return {
        role: {name for statement in statements for name in as_list(statement["Action"])}
        for role, statements in roles(template).items()
    }


@cache
def overlap(one: str, other: str) -> bool:
    """Whether a text exists that matches both patterns."""
    if not one or not other:
        return not (one + other).strip("*")
    if one[0] == "*":
        return overlap(one[1:], other) or overlap(one, other[1:])
    if other[0] == "*":
        return overlap(one, other[1:]) or overlap(one[1:], other)
    return one[0] == other[0] and overlap(one[1:], other[1:])


@cache
def arn_pattern(name: str, kind: str) -> str:
    parts = arn_format(name, kind).replace("${Partition}", "aws").split("${")
    return parts[0] + "".join("*" + part.partition("}")[2] for part in parts[1:])


def allowed_on(name: str, kind: str, resources: list[str]) -> bool:
    return any(overlap(resource, arn_pattern(name, kind)) for resource in resources)


@pytest.mark.parametrize("name", NAMES)
def test_permission_covers_every_resource_type_of_a_request(name: str) -> None:
    missing = [
        (role, permitted, kind)
        for role, permitted, resources in permissions(template_of(name))
        for kind in (*action(permitted).required, *NAMED_BESIDES.get(permitted, ()))
        if not allowed_on(permitted, kind, resources)
    ]
    assert missing == []


@pytest.mark.parametrize("name", NAMES)
def test_role_allows_the_dependent_actions_of_its_actions(name: str) -> None:
    missing = {
        (role, permitted, needed)
        for role, actions in actions_of_roles(template_of(name)).items()
        for permitted in actions
        if permitted not in NOT_NEEDED
        for needed in dependent_actions(permitted) - actions - NOT_NEEDED.keys()
    }
    assert missing == set()


def test_guard_of_slurm_nodes_may_update_a_group_in_a_capacity_block() -> None:
    guards = [
        actions
        for actions in actions_of_roles(template_of("pcs-image")).values()
        if "pcs:UpdateComputeNodeGroup" in actions
    ]
    assert guards
    for actions in guards:
        assert actions >= UPDATE_IN_A_CAPACITY_BLOCK | dependent_actions("pcs:UpdateComputeNodeGroup")


@pytest.mark.parametrize("name", NAMES)
def test_permission_is_only_on_resources_of_its_action(name: str) -> None:
    for role, permitted, resources in permissions(template_of(name)):
        known = action(permitted)
        kinds = [*known.required, *known.optional]
        for resource in resources:
            fits = resource == "*" or any(allowed_on(permitted, kind, [resource]) for kind in kinds)
            assert fits or known.any_type, (role, permitted, resource)


RUNTIME = Path(trainium_runtime.__file__).parent
ACTION_OF_OPERATION = tomllib.loads((files("trainium_local.permissions") / "actions.toml").read_text())["actions"]
ALWAYS = {"logs:CreateLogStream", "logs:PutLogEvents"}
"""Actions that Lambda itself performs with the role of a function."""

UPDATE_IN_A_CAPACITY_BLOCK = {
    "ec2:DescribeCapacityBlockStatus",
    "ec2:DescribeCapacityBlocks",
    "ec2:DescribeCapacityReservations",
}
"""What AWS PCS requires to update a group (AWS PCS User Guide, Capacity Blocks). The reference omits it."""

CHECKED_BY_SERVICES = {
    "handlers.node_group_guard": {
        *dependent_actions("pcs:UpdateComputeNodeGroup"),
        *UPDATE_IN_A_CAPACITY_BLOCK,
        "ec2:DescribeInstanceTypeOfferings",
    }
}
"""Permissions that a service checks of its caller: UpdateComputeNodeGroup (AWS PCS User Guide, minimum permissions)."""

NOT_NEEDED = {
    "cloudformation:ListStacks": "DescribeStacks needs it only without a name (CloudFormation API reference)",
    "ec2:CreateNetworkInterface": "SageMaker creates the interfaces of jobs without tags (SageMaker, execution roles)",
    "secretsmanager:GetSecretValue": "AWS PCS reads the key itself: AWSPCSComputeNodePolicy does not allow it",
    "servicequotas:GetServiceQuota": "it reads other services only for the value that an account uses",
    "ssm:GetParameters": "launch templates have the ID of an image",
}
"""Actions that requests of these roles do not need, or that need none of their dependent actions, with the reason."""

ALSO_NEEDED = {"s3:DeleteObject": {"s3:DeleteObjectVersion"}}
"""Further actions that the same request needs: to delete an object with a version ID."""


@cache
def reachable(module: str) -> frozenset[str]:
    """A module of the runtime and the modules that it imports."""
    seen, pending = set[str](), [module]
    while pending:
        name = pending.pop()
        path = RUNTIME / f"{name.replace('.', '/')}.py"
        if name in seen or not path.is_file():
            continue
        seen.add(name)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                parts = [name.rpartition(".")[0] if node.level else "", node.module or ""]
                imported = ".".join(part for part in parts if part).removeprefix("trainium_runtime.")
                pending += [imported] if node.module else [f"{imported}.{alias.name}" for alias in node.names]
    return frozenset(seen)


@cache
def actions_called(handler: str) -> frozenset[str]:
    """Every action that the code of a handler, or of its imports, could request."""
    trees = [ast.parse((RUNTIME / f"{module.replace('.', '/')}.py").read_text()) for module in reachable(handler)]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = {node.func.attr for node in calls if isinstance(node.func, ast.Attribute)}
    texts = {arg.value for node in calls for arg in node.args if isinstance(arg, ast.Constant)}
    found = set[str]()
    for service in texts & set(boto3.Session().get_available_services()):
        model = boto3.client(service, region_name="us-west-2").meta.service_model
        for operation in model.operation_names:
            if xform_name(operation) in named | texts:
                prefix = {"service-quotas": "servicequotas"}.get(service, service)
                name = f"{prefix}:{ACTION_OF_OPERATION.get(prefix, {}).get(operation, operation)}"
                found |= {name} | ALSO_NEEDED.get(name, set())
    return frozenset(found)


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_allowed_only_actions_of_their_code(name: str) -> None:
    template = template_of(name)
    of_role = roles(template)
    for function in template.resources("AWS::Lambda::Function").values():
        handler = function["Properties"]["Handler"].removeprefix("trainium_runtime.").removesuffix(".handle")
        role = function["Properties"]["Role"]["Fn::GetAtt"][0]
        allowed = {name for statement in of_role[role] for name in as_list(statement["Action"])}
        assert allowed - ALWAYS - CHECKED_BY_SERVICES.get(handler, set()) <= actions_called(handler), handler


@pytest.mark.parametrize("name", [*NAMES, "training-nat"])
def test_permissions_of_every_template_type_are_known(name: str) -> None:
    types = {resource["Type"] for resource in template_of(name).resources().values()}
    assert {kind for kind in types if not kind.startswith("Custom::")} <= handler_actions().keys()


def test_sagemaker_may_assume_only_the_role_of_training_jobs() -> None:
    """So `operate`, which may pass the roles of the stacks to SageMaker, gives it only this one."""
    trusted = {
        logical_id
        for name in NAMES
        for logical_id, role in template_of(name).resources("AWS::IAM::Role").items()
        if "sagemaker.amazonaws.com" in json.dumps(role["Properties"]["AssumeRolePolicyDocument"])
    }
    assert {name.rstrip("0123456789ABCDEF") for name in trusted} == {"TrainingExecutionRole"}
