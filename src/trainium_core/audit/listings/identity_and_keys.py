"""Roles, instance profiles, policies, and KMS keys."""

from dataclasses import replace

from trainium_core.audit.listings.listing import ClientFactory, Entry, Listing, Location, tags_of
from trainium_core.audit.resource import Charge, Resource
from trainium_runtime.aws_errors import read_errors


def _role(entry: Entry, _location: Location) -> Resource:
    return _of_iam(entry, entry["RoleName"], tags=tags_of(entry))


def _profile(entry: Entry, _location: Location) -> Resource:
    return _of_iam(entry, entry["InstanceProfileName"])


def _policy(entry: Entry, _location: Location) -> Resource:
    return _of_iam(entry, entry["PolicyName"])


def _of_iam(entry: Entry, name: str, *, tags: dict[str, str] | None = None) -> Resource:
    arn = entry["Arn"]
    return Resource(name=name, arn=arn, ids=frozenset([name, arn]), tags=tags, created=entry.get("CreateDate"))


def _key(entry: Entry, _location: Location) -> Resource:
    return Resource(
        name=entry["KeyId"],
        arn=entry["KeyArn"],
        ids=frozenset([entry["KeyId"], entry["KeyArn"]]),
        charge=Charge(unpriced="a key"),
    )


def _measure_key(client_of: ClientFactory, key: Resource) -> Resource | None:
    """None for a key that is pending deletion: it is not billed, and needs no action."""
    with read_errors("kms:DescribeKey"):
        described = client_of("kms").describe_key(KeyId=key.name)["KeyMetadata"]
    if described["KeyState"] == "PendingDeletion":
        return None
    return replace(key, state=described["KeyState"], created=described.get("CreationDate"))


IDENTITY_AND_KEYS = (
    Listing(
        kind="IAM role",
        resource_type="AWS::IAM::Role",
        arn_type="iam:role",
        service="iam",
        permission="iam:GetAccountAuthorizationDetails",
        entries="RoleDetailList[]",
        read=_role,
        arguments={"Filter": ["Role"]},
        in_estimates=False,
    ),
    Listing(
        kind="instance profile",
        resource_type="AWS::IAM::InstanceProfile",
        arn_type="iam:instance-profile",
        service="iam",
        permission="iam:ListInstanceProfiles",
        entries="InstanceProfiles[]",
        read=_profile,
        in_estimates=False,
    ),
    Listing(
        kind="IAM policy",
        resource_type="AWS::IAM::ManagedPolicy",
        arn_type="iam:policy",
        service="iam",
        permission="iam:ListPolicies",
        entries="Policies[]",
        read=_policy,
        arguments={"Scope": "Local"},
        in_estimates=False,
    ),
    Listing(
        kind="KMS key",
        resource_type="AWS::KMS::Key",
        arn_type="kms:key",
        service="kms",
        permission="kms:ListKeys",
        entries="Keys[]",
        read=_key,
        measure=_measure_key,
    ),
)
