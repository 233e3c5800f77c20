"""Policy evaluation alone: matching, unknown values, and precedence."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_local.permissions.policies import Access, refusal

OBJECT = "arn:aws:s3:::b/logs/1"


def access(action: str = "s3:GetObject", resource: str = OBJECT, **keys: list[str] | None) -> Access:
    known = {key.replace("__", ":"): values for key, values in keys.items()}
    return Access(action=action, resource=resource, context=known.get)


def is_allowed(access: Access, *statements: dict[str, Any]) -> bool:
    return refusal({"identity-based policy": statements}, access) is None


def allow(**more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "*", "Resource": "*", **more}


def deny(**more: Any) -> dict[str, Any]:
    return allow(**more) | {"Effect": "Deny"}


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        (allow(), True),
        (allow(Action="S3:getobject"), True),
        (allow(Action=["s3:Put*", "s3:Get?bject"]), True),
        (allow(Action="s3:Put*"), False),
        (allow(Resource="arn:aws:s3:::b/*"), True),
        (allow(Resource="arn:aws:s3:::B/*"), False),
        (allow(Resource="arn:aws:s3:::b"), False),
        ({"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}, True),
        ({"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"}, False),
        ({"Effect": "Allow", "Action": "*", "NotResource": "arn:aws:s3:::b/*"}, False),
        ({"Effect": "Allow", "Action": "*", "NotResource": "arn:aws:s3:::c/*"}, True),
    ],
)
def test_actions_and_resources_are_matched(statement: dict[str, Any], allowed: bool) -> None:
    assert is_allowed(access(), statement) is allowed


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"StringEquals": {"S3:Prefix": "a"}}, True),
        ({"StringEquals": {"s3:prefix": ["b", "a"]}}, True),
        ({"StringNotEquals": {"s3:prefix": ["b", "a"]}}, False),
        ({"StringLike": {"s3:prefix": "?"}, "StringEquals": {"s3:prefix": "b"}}, False),
        ({"StringEquals": {"s3:max": "1"}}, False),
        ({"StringEqualsIfExists": {"s3:max": "1"}}, True),
        ({"StringNotEquals": {"s3:max": "1"}}, True),
        ({"Null": {"s3:max": "true"}}, True),
        ({"Null": {"s3:prefix": "true"}}, False),
        ({"ForAllValues:StringEquals": {"aws:tags": ["x", "y", "z"]}}, True),
        ({"ForAllValues:StringEquals": {"aws:tags": ["x"]}}, False),
        ({"ForAnyValue:StringEquals": {"aws:tags": ["x"]}}, True),
        ({"ForAnyValue:StringEquals": {"s3:max": ["x"]}}, False),
        ({"Bool": {"aws:secure": "TRUE"}}, True),
        ({"ArnLike": {"aws:arn": "arn:aws:iam::*:role/r"}}, True),
    ],
)
def test_conditions_are_evaluated(condition: dict[str, Any], holds: bool) -> None:
    requested = access(
        s3__prefix=["a"],
        s3__max=[],
        aws__tags=["x", "y"],
        aws__secure=["true"],
        aws__arn=["arn:aws:iam::1:role/r"],
    )
    assert is_allowed(requested, allow(Condition=condition)) is holds


def test_unknown_value_satisfies_allow_and_not_deny() -> None:
    unknown = {"StringEquals": {"ec2:Vpc": "x"}}
    assert is_allowed(access(), allow(Condition=unknown))
    assert is_allowed(access(), allow(), deny(Condition=unknown))
    of_some_instance = access("ec2:RunInstances", "arn:aws:ec2:us-west-2:1:instance/*")
    assert is_allowed(of_some_instance, allow(Resource="arn:aws:ec2:*:1:instance/i-1"))
    assert not is_allowed(of_some_instance, allow(Resource="arn:aws:ec2:*:1:volume/*"))
    assert is_allowed(of_some_instance, allow(), deny(Resource="arn:aws:ec2:*:1:instance/i-1"))
    assert not is_allowed(of_some_instance, allow(), deny(Resource="arn:aws:ec2:*:1:instance/*"))


def test_unknown_variable_in_arn_matches_anything_for_allow() -> None:
    own = "arn:aws:s3:::b/${aws:username}/*"
    assert is_allowed(access(), allow(Resource=own))
    assert is_allowed(access(), allow(), deny(Resource=own))


STATEMENTS = st.lists(
    st.builds(
        lambda effect, action, resource: {"Effect": effect, "Action": action, "Resource": resource},
        st.sampled_from(["Allow", "Deny"]),
        st.sampled_from(["*", "s3:*", "s3:GetObject", "ec2:*"]),
        st.sampled_from(["*", "arn:aws:s3:::b/*", "arn:aws:s3:::c/*"]),
    )
)


@given(STATEMENTS)
def test_applicable_deny_overrides_everything(statements: list[dict[str, Any]]) -> None:
    assert not is_allowed(access(), *statements, deny(Action="s3:GetObject"))


@given(STATEMENTS, STATEMENTS)
def test_boundary_never_adds_a_permission(identity: list[dict[str, Any]], boundary: list[dict[str, Any]]) -> None:
    both = {"identity-based policy": identity, "permissions boundary": boundary}
    if refusal(both, access()) is None:
        assert is_allowed(access(), *identity)
        assert is_allowed(access(), *boundary)
