"""Stack policies: which resources an update may change (CloudFormation User Guide, "Prevent updates to resources")."""

from cfnlint.helpers import ensure_list

from trainium_local.cloudformation import template_source
from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.stack import StackResource
from trainium_local.permissions.policies import Access, applies, statements


def given(body: str | None, url: str | None, region: str) -> str:
    """The policy of a request, "" if it brings none. Raises ValidationError for a text that is no stack policy."""
    policy = template_source.fetch(url, region) if url else body or ""
    try:
        valid = not policy or all(one["Effect"] in ("Allow", "Deny") for one in statements(policy))
    except (ValueError, LookupError, TypeError):
        valid = False
    if not valid:
        raise ValidationError("Error validating stack policy: Invalid stack policy")
    return policy


def refuse(policy: str, action: str, resource: StackResource) -> None:
    """Raise ValidationError if a policy, unless it is empty, does not allow to Modify, Replace or Delete a resource."""
    if not policy:
        return
    access = Access(
        action=f"Update:{action}",
        resource=f"LogicalResourceId/{resource.logical_id}",
        context=lambda key: [resource.resource_type] if key == "resourcetype" else [],
    )
    applying = [(number, one) for number, one in enumerate(statements(policy), 1) if applies(one, access)]
    for number, statement in applying:
        if statement["Effect"] == "Deny":
            actions, resources = (", ".join(ensure_list(statement.get(name, "*"))) for name in ("Action", "Resource"))
            raise ValidationError(
                f"Action denied by stack policy: Statement [#{number}] does not allow [{actions}] for resource "
                f"[{resources}];"
            )
    if not applying:
        raise ValidationError("Action not allowed by stack policy")
