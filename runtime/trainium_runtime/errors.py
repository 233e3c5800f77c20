"""When a question gets no answer, or a request is not taken."""


class UnavailableError(Exception):
    """A question that got no answer; the message says why, and names the permission if one is missing."""


class NotSignedInError(UnavailableError):
    """A question that was not even asked, since there are no credentials to ask with: every other fails alike."""


class RequestRefusedError(Exception):
    """AWS did not take a request; the message says why, and names the permission if one is missing."""
