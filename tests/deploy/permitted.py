"""Users and a role for CloudFormation with exactly the permissions that `trn permissions` prints; other roles."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from tests.constructs.synth import a_plan
from tests.deploy.account import Account
from trainium_core.permissions.roles import CLOUDFORMATION, PolicyScope, policies, role_scope
from trainium_local.environment import ACCOUNT_ID
from trainium_local.signatures import SigningCredentials


@cache
def scope() -> PolicyScope:
    """The scope of the plans in tests/constructs/synth.py."""
    return role_scope(a_plan(), account=ACCOUNT_ID)


def execution_policies(account: Account) -> Sequence[str]:
    """Create managed policies for CloudFormation's role, and return their ARNs."""
    create = account.aws.client("iam").create_policy
    documents = [json.dumps(one) for one in policies(CLOUDFORMATION, scope())]
    return [
        create(PolicyName=f"trn-cloudformation-{number}", PolicyDocument=document)["Policy"]["Arn"]
        for number, document in enumerate(documents)
    ]


def as_user(account: Account, role: str) -> Account:
    """Create a user with the policies of a role of `trn permissions`, and return the account with its keys."""
    iam = account.aws.client("iam")
    iam.create_user(UserName=role)
    for number, document in enumerate(policies(role, scope())):
        created = iam.create_policy(PolicyName=f"{role}-{number}", PolicyDocument=json.dumps(document))
        iam.attach_user_policy(UserName=role, PolicyArn=created["Policy"]["Arn"])
    key = iam.create_access_key(UserName=role)["AccessKey"]
    credentials = SigningCredentials(access_key_id=key["AccessKeyId"], secret_access_key=key["SecretAccessKey"])
    connection = replace(account.aws.connection, credentials=credentials)
    return replace(account, aws=replace(account.aws, connection=connection, _clients={}))


def with_role(account: Account, name: str) -> Account:
    """The account with the keys of a role, which trusts the account."""
    role = f"arn:aws:iam::{ACCOUNT_ID}:role/{name}"
    keys = account.aws.client("sts").assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    credentials = SigningCredentials(
        access_key_id=keys["AccessKeyId"],
        secret_access_key=keys["SecretAccessKey"],
        session_token=keys["SessionToken"],
    )
    connection = replace(account.aws.connection, credentials=credentials)
    return replace(account, aws=replace(account.aws, connection=connection, _clients={}))
