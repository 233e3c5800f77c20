"""Errors of calls to AWS: UnavailableError for calls that read, RequestRefusedError for calls that change."""

SIGN_IN = "sign in with `aws sso login` or `aws configure`, or set AWS_PROFILE to a working profile"

ABSENT_OBJECT = ("NoSuchKey", "404", "NotFound")
"""Codes of S3 for an object that does not exist. The responses to HEAD requests have no body, and so other codes."""
CHANGED_OBJECT = ("PreconditionFailed", "ConditionalRequestConflict")
"""Codes of S3 for a conditional write if the object exists, was changed, or is being written."""

REACH_AWS = "check the network, the proxy (HTTPS_PROXY) and the region name"
SIGN_IN_OR_ENABLE = f"{SIGN_IN}, or enable the region"
BE_ALLOWED = "use a profile with this permission (AWS_PROFILE), or ask for it: `trn permissions` prints the policies"
TRUST_CERTIFICATE = (
    "a proxy that inspects TLS signs with its own CA: set AWS_CA_BUNDLE, and NODE_EXTRA_CA_CERTS for the CDK CLI, to "
    "the file with that CA's certificate"
)
ASK_ORGANIZATION = (
    "permissions cannot override it: ask the administrator of your organization; `trn preflight --suppress CHECK` runs "
    "without a check, and `trn:quota_check=off` deploys without that of quotas"
)
REMEDIES = (SIGN_IN, SIGN_IN_OR_ENABLE, REACH_AWS, BE_ALLOWED, TRUST_CERTIFICATE, ASK_ORGANIZATION)
"""Remedies that can correct several failed calls at once."""


class UnavailableError(Exception):
    """A failed read.

    Args:
        reason: Why it failed, with the permission if one is missing.
        remedy: What to do, if known.
    """

    def __init__(self, reason: str, *, remedy: str = "") -> None:
        super().__init__(f"{reason}: {remedy}" if remedy else reason)
        self.reason, self.remedy = reason, remedy


class DeniedError(UnavailableError):
    """The caller lacks a permission for this call; other calls may work."""

    def __init__(self, reason: str, *, remedy: str = BE_ALLOWED) -> None:
        super().__init__(reason, remedy=remedy)


class NoAccessError(UnavailableError):
    """A failed read for a reason that makes every other call fail too."""


class NotSignedInError(NoAccessError):
    """Credentials are missing, incomplete or expired, or could not be loaded."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, remedy=SIGN_IN)


class OfflineError(NoAccessError):
    """AWS was not reached."""

    def __init__(self, reason: str, *, remedy: str = REACH_AWS) -> None:
        super().__init__(reason, remedy=remedy)


class RequestRefusedError(Exception):
    """A failed change. The message has the reason, with the permission if one is missing."""
