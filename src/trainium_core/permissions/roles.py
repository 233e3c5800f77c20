"""The IAM policies of people who work with a plan, and of CloudFormation's role."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from trainium_core.facts import DATA
from trainium_core.naming import CACHE_PREFIX, DEFAULT_QUALIFIER, training_job_prefix
from trainium_core.plan import Plan

_ANY_TYPE = "*"


@dataclass(frozen=True, kw_only=True)
class Action:
    """An IAM action, such as ec2:AttachNetworkInterface.

    Attributes:
        access: Read, List, Write, Tagging or Permissions management.
        required: Resource types that every request must name.
        optional: Resource types that a request may name.
        any_type: Whether the action supports other resource types too.
    """

    access: str
    required: Sequence[str]
    optional: Sequence[str]
    any_type: bool


@cache
def _reference() -> Mapping[str, Any]:
    return tomllib.loads((DATA / "service_authorization.toml").read_text())


def action(name: str) -> Action:
    """An action of the Service Authorization Reference. Raises KeyError if the data file does not contain it."""
    prefix, _, short = name.partition(":")
    row = _reference()["actions"][prefix][short]
    optional = row.get("optional", [])
    return Action(
        access=row["access"],
        required=row.get("required", []),
        optional=[kind for kind in optional if kind != _ANY_TYPE],
        any_type=_ANY_TYPE in optional,
    )


CLOUDFORMATION = "cloudformation"
"""The role that CloudFormation assumes; people do not use it."""

_CACHE_OBJECT_ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")
"""The actions on entries of an existing cache bucket, unless nodes only read it."""

Document = Mapping[str, Any]
Statement = dict[str, Any]


@cache
def _data() -> Mapping[str, Any]:
    return tomllib.loads((DATA / "permissions.toml").read_text())


@cache
def handler_actions() -> Mapping[str, Sequence[str]]:
    """The actions that CloudFormation needs, by resource type."""
    return tomllib.loads((DATA / "cloudformation_permissions.toml").read_text())["types"]


def roles() -> Sequence[str]:
    """The roles with policies: `read-only`, `operate`, `deploy` and `cloudformation`."""
    return (*_data()["commands"], CLOUDFORMATION)


def commands(role: str) -> Mapping[str, Sequence[str]]:
    """The actions of each command of the role, without those of included roles.

    Raises:
        KeyError: The role does not exist, or is `cloudformation`.
    """
    lists: Mapping[str, Sequence[str]] = _data()["commands"][role]
    return {
        command: [name for entry in entries for name in lists.get(entry, [entry])] for command, entries in lists.items()
    }


def allowed_actions(role: str) -> Sequence[str]:
    """All actions of a role, including those of the roles that it includes, sorted."""
    if role == CLOUDFORMATION:
        return sorted({name for names in handler_actions().values() for name in names})
    included = [role, *_data()["includes"].get(role, ())]
    return sorted({name for each in included for names in commands(each).values() for name in names})


@dataclass(frozen=True, kw_only=True)
class PolicyScope:
    """Values for ARNs in policies.

    Attributes:
        account: Account ID, or `*` for any account.
        stacks: CloudFormation names of the stacks.
        cache_bucket: Existing bucket of the compile cache, if the plan names one.
        cache_read_only: Whether nodes only read that bucket. Policies then allow only reads of its entries.
        checkpoints: Bucket and folder of job checkpoints that outlive the cluster.
        image_parameter: The user's SSM parameter that names the image.
        qualifier: The qualifier of `cdk bootstrap`, which is in the names of its resources.
    """

    partition: str
    region: str
    account: str
    cluster: str
    stacks: Sequence[str]
    cache_bucket: str | None
    cache_read_only: bool = False
    checkpoints: str | None = None
    image_parameter: str | None = None
    qualifier: str = DEFAULT_QUALIFIER

    def fill_in(self, patterns: Sequence[str]) -> list[str]:
        """The ARNs of all stacks for patterns of data/permissions.toml."""
        arns = [
            pattern.format(
                partition=self.partition,
                region=self.region,
                account=self.account,
                cluster=self.cluster,
                training_job=training_job_prefix(self.cluster),
                stack=physical_name_prefix(stack),
                stack_name=stack,
                bucket=physical_name_prefix(stack).lower(),
                qualifier=self.qualifier,
            )
            for pattern in patterns
            for stack in self.stacks
        ]
        return list(dict.fromkeys(arns))


def stack_name_characters() -> int:
    """The number of characters of a stack's name with which physical names begin."""
    return _data()["physical_names"]["stack_name_characters"]


def physical_name_prefix(stack: str) -> str:
    """Prefix of the physical names of a stack's resources. CloudFormation shortens long stack names."""
    longest = stack_name_characters()
    return stack if len(stack) <= longest else f"{stack[:longest]}*"


def role_scope(
    plan: Plan, *, account: str = "*", partition: str = "aws", qualifier: str = DEFAULT_QUALIFIER
) -> PolicyScope:
    """The scope of a plan's stacks."""
    stacks = [plan.stack_names[key] for key in plan.stacks]
    return PolicyScope(
        partition=partition,
        region=plan.region,
        account=account,
        cluster=plan.cluster_name,
        stacks=stacks,
        cache_bucket=plan.cache.bucket,
        cache_read_only=plan.cache.access == "read",
        image_parameter=_own_parameter(plan.image),
        qualifier=qualifier,
        checkpoints=plan.jobs.checkpoints and plan.jobs.checkpoints.removeprefix("s3://").rstrip("/"),
    )


def _own_parameter(image: str) -> str | None:
    return image if image.startswith("/") and not image.startswith("/aws/service/") else None


def policies(role: str, scope: PolicyScope) -> Sequence[Document]:
    """The policies of a role, each within IAM's size limit for managed policies."""
    statements = [*_grouped(role, scope), *_alone(role, scope)]
    documents: list[list[Statement]] = [[]]
    for statement in statements:
        if _length([*documents[-1], statement]) > _data()["quotas"]["policy_characters"]:
            documents.append([])
        documents[-1].append(statement)
    return [_document(statements) for statements in documents]


def _grouped(role: str, scope: PolicyScope) -> Iterator[Statement]:
    """One statement for each set of resources, in parts that fit into a policy."""
    by_resources: dict[tuple[str, ...], list[str]] = {}
    alone = {row["action"] for row in _own_actions(role)}
    for name in allowed_actions(role):
        if name not in alone:
            by_resources.setdefault(tuple(_resources(role, name, scope)), []).append(name)
    for resources, names in by_resources.items():
        yield from _parts(names, resources)


def _parts(names: Sequence[str], resources: Sequence[str]) -> Iterator[Statement]:
    statement = _statement(names, resources)
    if _length([statement]) <= _data()["quotas"]["policy_characters"]:
        yield statement
        return
    half = len(names) // 2
    yield from _parts(names[:half], resources)
    yield from _parts(names[half:], resources)


def _resources(role: str, name: str, scope: PolicyScope) -> list[str]:
    """The ARNs of the resources on which an action is allowed.

    They are the patterns of the action's resource types in the section `arns`, filled in for the plan's stacks, and the
    resources outside the stacks that the role uses: those in the section `outside`, buckets and an image parameter of
    the plan, or assets of the CDK.
    An action without such ARNs, or with a wildcard in its name, is allowed on all resources, and so are the actions of
    people in the section `everywhere`.

    Raises:
        LookupError: An action of people supports resource-level permissions, but has no ARNs and is not in
            `everywhere`; or a required resource type of an action has no ARNs, but another type of it has.
    """
    if "*" in name or (name in _data()["everywhere"] and role != CLOUDFORMATION):
        return ["*"]
    known, service = action(name), name.partition(":")[0]
    kinds = [f"{service}:{kind}" for kind in (*known.required, *known.optional)]
    patterns = [pattern for kind in kinds for pattern in _data()["arns"].get(kind, ())]
    if role == CLOUDFORMATION:
        assets = _data()[CLOUDFORMATION]
        patterns += {"s3:GetObject": assets["assets"], "ssm:GetParameters": assets["parameters"]}.get(name, [])
    else:
        patterns += _data()["outside"].get(name, [])
        patterns += [f"arn:{{partition}}:s3:::{path}" for path in _existing_bucket_paths(name, scope)]
    if scope.image_parameter and name.startswith("ssm:GetParameter"):
        patterns += [f"arn:{{partition}}:ssm:{{region}}:{{account}}:parameter{scope.image_parameter}"]
    if kinds and not patterns and role != CLOUDFORMATION:
        fix = f"add ARNs of {' or '.join(kinds)} to [arns], or the action and a reason to [everywhere]"
        raise LookupError(f"data/permissions.toml does not limit {name} to resources: {fix}")
    missing = [kind for kind in known.required if f"{service}:{kind}" not in _data()["arns"]]
    if patterns and missing:
        raise LookupError(f"data/permissions.toml allows {name} on no {' and no '.join(missing)}: add ARNs to [arns]")
    return scope.fill_in(patterns) or ["*"]


def _existing_bucket_paths(name: str, scope: PolicyScope) -> Iterator[str]:
    """The existing buckets of the plan, or the objects in them, that the action may access."""
    if scope.cache_bucket:
        if name == "s3:ListBucket":
            yield scope.cache_bucket
        elif name in (("s3:GetObject",) if scope.cache_read_only else _CACHE_OBJECT_ACTIONS):
            yield f"{scope.cache_bucket}/{CACHE_PREFIX}/*"
    if scope.checkpoints:
        if name == "s3:ListBucket":
            yield scope.checkpoints.partition("/")[0]
        elif name == "s3:GetObject":
            yield f"{scope.checkpoints}/*"


def _own_actions(role: str) -> list[Mapping[str, Any]]:
    """The rows of the actions with a separate statement, which has a condition or other ARNs."""
    actions = allowed_actions(role)
    return [row for row in _data()["alone"] if row["action"] in actions and role in row.get("roles", [role])]


def _alone(role: str, scope: PolicyScope) -> Iterator[Statement]:
    for row in _own_actions(role):
        statement = _statement([row["action"]], scope.fill_in(row["arns"]))
        if "condition" in row:
            statement["Condition"] = json.loads(json.dumps(row["condition"]).replace("{cluster}", scope.cluster))
        yield statement


def _statement(names: Sequence[str], resources: Sequence[str]) -> Statement:
    return {"Effect": "Allow", "Action": list(names), "Resource": list(resources)}


def _document(statements: Sequence[Statement]) -> Document:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def _length(statements: Sequence[Statement]) -> int:
    return len(json.dumps(_document(statements), separators=(",", ":")))
