"""What the CloudFormation API answers when it refuses."""

from __future__ import annotations

from moto.core.exceptions import ServiceException


class ValidationError(ServiceException):
    code = "ValidationError"


class AlreadyExistsError(ServiceException):
    code = "AlreadyExistsException"


class ChangeSetNotFoundError(ServiceException):
    code = "ChangeSetNotFound"


class InvalidChangeSetStatusError(ServiceException):
    code = "InvalidChangeSetStatus"


class InvalidActionError(ServiceException):
    code = "InvalidAction"


def no_such_stack(name: str) -> ValidationError:
    """The answer about a stack that is not there, in the words that the CDK CLI looks for."""
    return ValidationError(f"Stack with id {name} does not exist")
