"""Errors of calls to AWS: one that reads fails as unavailable, one that changes as refused."""

SIGN_IN = "sign in with `aws sso login` or `aws configure`, or name a profile that works in AWS_PROFILE"

REACH_AWS = "look at the network, the proxy (HTTPS_PROXY) and the name of the region"
REMEDIES = (SIGN_IN, REACH_AWS)
"""What helps where no question is answered."""


class UnavailableError(Exception):
    """A read that failed; the message says why, and names the permission if one is missing."""


class NoAccessError(UnavailableError):
    """A question that got no answer for a reason by which every other fails alike. remedy: what helps."""

    def __init__(self, reason: str, *, remedy: str) -> None:
        super().__init__(f"{reason}: {remedy}")
        self.reason, self.remedy = reason, remedy


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
