"""Errors of calls to AWS: one that reads fails as unavailable, one that changes as refused."""

SIGN_IN = "sign in with `aws sso login` or `aws configure`, or set AWS_PROFILE to a working profile"

REACH_AWS = "check the network, the proxy (HTTPS_PROXY) and the region name"
SIGN_IN_OR_ENABLE = f"{SIGN_IN}, or enable the region"
BE_ALLOWED = "use a profile with this permission (AWS_PROFILE), or have it added: `trn permissions` prints the policies"
REMEDIES = (SIGN_IN, SIGN_IN_OR_ENABLE, REACH_AWS, BE_ALLOWED)
"""What helps where no question is answered."""


class UnavailableError(Exception):
    """A read that failed. reason: why, with the permission if one is missing. remedy: what helps, if known."""

    def __init__(self, reason: str, *, remedy: str = "") -> None:
        super().__init__(f"{reason}: {remedy}" if remedy else reason)
        self.reason, self.remedy = reason, remedy


class DeniedError(UnavailableError):
    """Whoever is signed in lacks a permission, which others may have for all else."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, remedy=BE_ALLOWED)


class NoAccessError(UnavailableError):
    """A question that got no answer for a reason by which every other fails alike."""


class NotSignedInError(NoAccessError):
    """There are no credentials to ask with, or none that are valid any more."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, remedy=SIGN_IN)


class OfflineError(NoAccessError):
    """AWS was not reached."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, remedy=REACH_AWS)


class RequestRefusedError(Exception):
    """AWS refused a change; the message says why, and names the permission if one is missing."""
