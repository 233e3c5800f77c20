"""When a question gets no answer."""


class CannotTellError(Exception):
    """A question that got no answer; the message says why, and names the permission if one is missing."""
