"""Identifies the sender of a request: the owner of this server, or a principal with credentials from its IAM or STS."""

import secrets
from dataclasses import dataclass
from typing import Any

from trainium_local.environment import ACCOUNT_ID
from trainium_local.signatures import SigningCredentials

CALLER = "trainium_local.caller"
"""Key of the WSGI environment for the Caller of a request. Requests with a token in their URL have none."""

_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_owner: list[SigningCredentials] = []
_of_roles: dict[tuple[str, str], SigningCredentials] = {}


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The signer of a request.

    Attributes:
        access_key_id: The access key ID of the signature.
        is_owner: Whether the request is signed with the owner's credentials, which IAM policies do not restrict.
    """

    access_key_id: str
    is_owner: bool


def make_owner() -> SigningCredentials:
    """Create the owner's credentials. Only this server process accepts them."""
    identity = "TRNL" + "".join(secrets.choice(_BASE32) for _ in range(16))
    _owner[:] = [SigningCredentials(access_key_id=identity, secret_access_key=secrets.token_urlsafe(30))]
    return _owner[0]


def owner() -> SigningCredentials:
    """Return the owner's credentials."""
    return _owner[0]


def user_credentials(access_key_id: str) -> SigningCredentials | None:
    """Return the credentials with an access key ID, or None if the key is unknown or inactive."""
    from moto.iam.models import iam_backends
    from moto.sts.models import sts_backends

    if access_key_id == owner().access_key_id:
        return owner()
    iam: Any = iam_backends
    sts: Any = sts_backends
    for account in list(iam):
        key = iam[account]["aws"].access_keys.get(access_key_id)
        if key and key.status == "Active":
            session = sts[account]["aws"].get_assumed_role_from_access_key(access_key_id)
            return _credentials(session or key)
    return None


def caller(access_key_id: str) -> Caller:
    return Caller(access_key_id=access_key_id, is_owner=access_key_id == owner().access_key_id)


def role_credentials(role_arn: str, *, session: str, region: str) -> SigningCredentials:
    """Return credentials for a role, as STS AssumeRole does. Each session reuses its credentials."""
    from moto.sts.models import sts_backends

    known = _of_roles.get((role_arn, session))
    if known is None or user_credentials(known.access_key_id) is None:
        role = sts_backends[role_arn.split(":")[4]]["aws"].assume_role(
            region_name=region,
            role_session_name=session,
            role_arn=role_arn,
            policy="",
            duration=12 * 3600,
            external_id="",
        )
        known = _of_roles[role_arn, session] = _credentials(role)
    return known


def access_key_account(access_key_id: str) -> str:
    """Return the account of a user's access key ID. All other keys belong to the account of this server."""
    from moto.iam.models import iam_backends

    accounts: Any = iam_backends
    for account_id, by_partition in list(accounts.items()):
        if any(access_key_id in backend.access_keys for backend in list(by_partition.values())):
            return account_id
    return ACCOUNT_ID


def random_secret(length: int) -> str:
    """Return a cryptographically random secret. Secrets of moto are predictable from its other identifiers."""
    return secrets.token_urlsafe(length)[:length]


def _credentials(response: Any) -> SigningCredentials:
    return SigningCredentials(
        access_key_id=response.access_key_id,
        secret_access_key=response.secret_access_key,
        session_token=getattr(response, "session_token", None),
    )
