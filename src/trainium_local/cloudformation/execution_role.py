"""With whose permissions a stack is worked on: its role's, given for it now or before, or those of whoever asks."""

from contextlib import AbstractContextManager
from typing import Any

from trainium_local.access import CALLER
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.permissions.enforcement import DeniedError, credentials_of_stack
from trainium_local.resources import api

_READ_PREFIXES = ("Describe", "Get", "List", "Validate")


def acting_for(response: Any) -> AbstractContextManager[None]:
    """Make the calls of this request to the CloudFormation API with those. Raises ValidationError for a wrong role."""
    caller = response.normalized_request.environ.get(CALLER)
    if caller is None or response._get_action().startswith(_READ_PREFIXES):
        return api.acting_as(None)
    change_set = response._find_change_set() if response._get_param("ChangeSetName") else None
    known = [one for one in (change_set, response._region.find(response._get_param("StackName") or "")) if one]
    roles = [response._get_param("RoleARN"), *(one.settings.get("RoleARN") for one in known)]
    try:
        return api.acting_as(credentials_of_stack(caller, next(filter(None, roles), None), response.region))
    except DeniedError as denied:
        raise ValidationError(denied.message) from denied
