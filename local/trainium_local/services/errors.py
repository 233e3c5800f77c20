"""Errors in the words of AWS, raised by the replaced behaviours."""

from moto.core.exceptions import ServiceException


class Refused(ServiceException):
    """A request that AWS refuses. `code` is AWS's error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
