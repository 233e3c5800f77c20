"""IAM roles, instance profiles, IAM policies, and KMS keys."""

from dataclasses import replace

from trainium_core.audit.listings.listing import ClientFactory, Entry, Listing, Location, entry_tags
from trainium_core.audit.resource import Charge, Resource
from trainium_runtime.aws_errors import read_errors


@Listing(
    "IAM role",
    "AWS::IAM::Role",
    arn_type="iam:role",
    permission="iam:GetAccountAuthorizationDetails",
    entries="RoleDetailList[]",
    arguments={"Filter": ["Role"]},
    in_estimates=False,
)
def _roles(entry: Entry, _location: Location) -> Resource:
    return _iam_resource(entry, entry["RoleName"], tags=entry_tags(entry))


@Listing(
    "instance profile",
    "AWS::IAM::InstanceProfile",
    arn_type="iam:instance-profile",
    permission="iam:ListInstanceProfiles",
    in_estimates=False,
)
def _profiles(entry: Entry, _location: Location) -> Resource:
    return _iam_resource(entry, entry["InstanceProfileName"])


@Listing(
    "IAM policy",
    "AWS::IAM::ManagedPolicy",
    arn_type="iam:policy",
    permission="iam:ListPolicies",
    arguments={"Scope": "Local"},
    in_estimates=False,
)
def _policies(entry: Entry, _location: Location) -> Resource:
    return _iam_resource(entry, entry["PolicyName"])


def _iam_resource(entry: Entry, name: str, *, tags: dict[str, str] | None = None) -> Resource:
    arn = entry["Arn"]
    return Resource(name=name, arn=arn, ids=frozenset([name, arn]), tags=tags, created=entry.get("CreateDate"))


def _measure_key(client_of: ClientFactory, key: Resource) -> Resource | None:
    """None for a key that is pending deletion: it is not billed, and needs no action."""
    with read_errors("kms:DescribeKey"):
        described = client_of("kms").describe_key(KeyId=key.name)["KeyMetadata"]
    if described["KeyState"] == "PendingDeletion":
        return None
    return replace(key, state=described["KeyState"], created=described.get("CreationDate"))


@Listing("KMS key", "AWS::KMS::Key", arn_type="kms:key", permission="kms:ListKeys", measure=_measure_key)
def _keys(entry: Entry, _location: Location) -> Resource:
    return Resource(
        name=entry["KeyId"],
        arn=entry["KeyArn"],
        ids=frozenset([entry["KeyId"], entry["KeyArn"]]),
        charge=Charge(unpriced="a key"),
    )


IDENTITY_AND_KEYS = (_roles, _profiles, _policies, _keys)
