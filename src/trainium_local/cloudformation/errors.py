"""What the CloudFormation API answers when it refuses."""

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
    """The answer about references to what is not there."""
    return ValidationError(
        f"Template format error: Unresolved resource dependencies [{', '.join(names)}] in the {section} block of the "
        "template"
    )


def no_such_stack(name: str) -> ValidationError:
    """The answer about a stack that is not there, in the words that the CDK CLI looks for."""
    return ValidationError(f"Stack with id {name} does not exist")
