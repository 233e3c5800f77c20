"""Errors of the CloudFormation API."""

from collections.abc import Iterable

from moto.core.exceptions import ServiceException


class ValidationError(ServiceException):
    code = "ValidationError"


class InsufficientCapabilitiesError(ServiceException):
    code = "InsufficientCapabilitiesException"


class AlreadyExistsError(ServiceException):
    code = "AlreadyExistsException"


class ChangeSetNotFoundError(ServiceException):
    code = "ChangeSetNotFound"


class InvalidChangeSetStatusError(ServiceException):
    code = "InvalidChangeSetStatus"


def unresolved(names: Iterable[str], section: str) -> ValidationError:
    """Return the error for references that do not exist."""
    return ValidationError(
        f"Template format error: Unresolved resource dependencies [{', '.join(names)}] in the {section} block of the "
        "template"
    )


def no_such_stack(name: str) -> ValidationError:
    """Return the error for a stack that does not exist. The CDK CLI looks for this message."""
    return ValidationError(f"Stack with id {name} does not exist")
