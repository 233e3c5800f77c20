"""Permissions for resources that are created, updated or deleted without a request to the service's API."""

from trainium_local.permissions import enforcement
from trainium_local.resources import api
from trainium_local.resources.registry import ProvisioningError, ResourceRequest

_READS = ("BatchGet", "Describe", "Get", "List")


def refuse_unless_allowed(request: ResourceRequest, handler: str) -> None:
    """Raise RequestDeniedError if policies are enforced and do not allow the main action of the type's handler.

    The registry's schema lists all actions that a handler may need. Which of them depends on the properties, so only
    one is required, for any resource: the action with the names of handler and type, else the first that changes
    something.

    Args:
        request: The resource.
        handler: create, update or delete.
    """
    if not enforcement.is_enforced():
        return
    listed = request.schema.document.get("handlers", {}).get(handler, {}).get("permissions", [])
    name = f":{handler}{request.resource_type.rpartition('::')[2]}".lower()
    changing = [action for action in listed if not action.partition(":")[2].startswith(_READS)]
    action = next((action for action in changing if action.lower().endswith(name)), next(iter(changing), None))
    if action is None:
        raise ProvisioningError(
            f"The embedded AWS cannot {handler} {request.resource_type} with --iam enforced: the schema of the type "
            "does not list the actions that require permission"
        )
    enforcement.refuse_unless_allowed(api.acting(), action, request.account)
