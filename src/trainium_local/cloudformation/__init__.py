"""A CloudFormation engine on top of moto's services.

It refuses unknown types, properties, references and attributes. A failed creation or update is rolled back, and its
events have the reason. `trainium_local.resources` defines the resource types.
"""

from moto.cloudformation import urls

from trainium_local.cloudformation.wire import CloudFormationResponse


def install() -> None:
    """Replace moto's CloudFormation. Call this once, before the server accepts requests."""
    # moto's engine skips unknown types, and does not roll back
    urls.url_paths["{0}/$"] = CloudFormationResponse.dispatch
