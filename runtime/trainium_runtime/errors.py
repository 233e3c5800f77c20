"""Errors of calls to AWS: one that reads fails as unavailable, one that changes as refused."""


class UnavailableError(Exception):
    """A read that failed; the message says why, and names the permission if one is missing."""


class NotSignedInError(UnavailableError):
    """There are no credentials, so that every read fails alike."""


class RequestRefusedError(Exception):
    """AWS refused a change; the message says why, and names the permission if one is missing."""
