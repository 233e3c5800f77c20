"""A CloudFormation engine on top of moto's services.

It refuses templates with unknown types, properties, references or attributes. A failed operation is rolled back, and
its events have the reason. Deleting a stack deletes its resources, except those with the deletion policy Retain.
`trainium_local.resources` defines the resource types.
"""

from moto.cloudformation import urls

from trainium_local.cloudformation.wire import CloudFormationResponse


def install() -> None:
    """Replace moto's CloudFormation. Call this once, before the server accepts requests."""
    # moto's engine skips unknown types, hides failures, returns no outputs and leaves resources behind
    urls.url_paths["{0}/$"] = CloudFormationResponse.dispatch
