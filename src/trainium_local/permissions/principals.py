"""The principals that request access: role sessions and users of moto's IAM, with their policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moto.iam.models import iam_backends
from moto.sts.models import sts_backends

from trainium_local.permissions.policies import Access, Statement, allows, statements

Keys = Mapping[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class Principal:
    """A principal.

    Attributes:
        arn: Its ARN.
        policies: Statements by kind of policy, with the names of kinds in AWS's messages.
        keys: Values of condition keys.
        names: ARNs with which resource policies can refer to it.
    """

    arn: str
    policies: Mapping[str, Sequence[Statement]]
    keys: Keys
    names: frozenset[str]


def principal(access_key_id: str, account: str) -> Principal | None:
    """Return the principal of a key, or None if neither IAM nor STS issued it."""
    backends: Any = sts_backends
    session = backends[account]["aws"].get_assumed_role_from_access_key(access_key_id)
    if session:
        role = find_role(session.role_arn)
        policies = _principal_policies(role) | (
            {"session policy": statements(session.policy)} if session.policy else {}
        )
        tags = {f"aws:principaltag/{tag['Key'].lower()}": [tag["Value"]] for tag in (role.tags if role else None) or ()}
        return _principal(session.arn, account, policies, tags | {"aws:principalarn": [session.role_arn]})
    user = _iam(account).get_user_from_access_key_id(access_key_id)
    if user is None:
        return None
    groups = _iam(account).get_groups_for_user(user.name)
    policy = [statement for owner in (user, *groups) for statement in _identity_policies(owner)]
    return _principal(user.arn, account, {"identity-based policy": policy}, {"aws:username": [user.name]})


def role_principal(role_arn: str, session: str) -> Principal:
    """Return the principal of a session of a role, for a service that uses the role."""
    account, name = role_arn.split(":")[4], role_arn.rpartition("/")[2]
    arn = f"arn:aws:sts::{account}:assumed-role/{name}/{session}"
    return _principal(arn, account, _principal_policies(find_role(role_arn)), {"aws:principalarn": [role_arn]})


def find_role(role_arn: str) -> Any | None:
    roles = list(_iam(role_arn.split(":")[4]).roles.values())
    return next((role for role in roles if role.arn == role_arn), None)


def trusts(role_arn: str, names: frozenset[str], keys: Keys) -> bool:
    """Return whether a principal with these names may assume the role."""
    role = find_role(role_arn)
    access = Access(action="sts:AssumeRole", resource="", context=lambda key: keys.get(key, []))
    return role is not None and allows(statements(role.assume_role_policy_document), access, {*names, "*"})


def _principal(arn: str, account: str, policies: Mapping[str, Sequence[Statement]], keys: Keys) -> Principal:
    keys = {"aws:principalarn": [arn], "aws:principalaccount": [account], **keys}
    return Principal(arn=arn, policies=policies, keys=keys, names=frozenset({arn, *keys["aws:principalarn"]}))


def _principal_policies(role: Any | None) -> dict[str, Sequence[Statement]]:
    policies: dict[str, Sequence[Statement]] = {"identity-based policy": _identity_policies(role) if role else ()}
    if role and role.permissions_boundary_arn:
        boundary = _iam(role.account_id).managed_policies.get(role.permissions_boundary_arn)
        policies["permissions boundary"] = _default_version(boundary) if boundary else ()
    return policies


def _identity_policies(owner: Any) -> list[Statement]:
    inline = [statement for document in owner.policies.values() for statement in statements(document)]
    return inline + [statement for policy in owner.managed_policies.values() for statement in _default_version(policy)]


def _default_version(policy: Any) -> Sequence[Statement]:
    return statements(next(version.document for version in policy.versions if version.is_default))


def _iam(account: str) -> Any:
    backends: Any = iam_backends
    return backends[account]["aws"]
