"""Who a request is from: the owner of this server, or somebody whom IAM or STS in it gave credentials."""

import secrets
from dataclasses import dataclass
from typing import Any

from trainium_local.signatures import Credentials

CALLER = "trainium_local.caller"
"""Where a request's WSGI environment holds its Caller; requests with a token in their URL have none."""

_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_owner: list[Credentials] = []


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Whoever signed a request. is_owner: with the credentials of this start, which may do everything."""

    access_key_id: str
    is_owner: bool


def make_owner() -> Credentials:
    """Credentials that only this start of the server accepts; they are the owner's from now on."""
    identity = "TRNL" + "".join(secrets.choice(_BASE32) for _ in range(16))
    _owner[:] = [Credentials(access_key_id=identity, secret_access_key=secrets.token_urlsafe(30))]
    return _owner[0]


def owner() -> Credentials:
    """The credentials of this start."""
    return _owner[0]


def secret_of(access_key_id: str) -> str | None:
    """The secret access key that belongs to an id, None if nobody here has that id."""
    if access_key_id == owner().access_key_id:
        return owner().secret_access_key
    key = _issued(access_key_id)
    return key.secret_access_key if key and key.status == "Active" else None


def caller(access_key_id: str) -> Caller:
    return Caller(access_key_id=access_key_id, is_owner=access_key_id == owner().access_key_id)


def role_credentials(role_arn: str, *, session: str, region: str) -> Credentials:
    """New credentials of a role, as STS AssumeRole gives them."""
    from moto.sts.models import sts_backends

    account = role_arn.split(":")[4]
    role = sts_backends[account]["aws"].assume_role(
        region_name=region,
        role_session_name=session,
        role_arn=role_arn,
        policy="",
        duration=12 * 3600,
        external_id="",
    )
    return Credentials(
        access_key_id=role.access_key_id,
        secret_access_key=role.secret_access_key,
        session_token=role.session_token,
    )


def random_secret(length: int) -> str:
    """moto's own are foretold by whoever has seen enough of its other identifiers."""
    return secrets.token_urlsafe(length)[:length]


def _issued(access_key_id: str) -> Any:
    from moto.iam.models import iam_backends

    backends: Any = iam_backends
    for account in list(backends.values()):
        for backend in list(account.values()):
            if key := backend.access_keys.get(access_key_id):
                return key
    return None
