"""An honest CloudFormation in front of moto's services.

A template is refused when a type, a property, a reference or an attribute does not exist; a failure is rolled back and
gives its reason; a deleted stack leaves nothing. `trainium_local.resources` has the types.
"""

from moto.cloudformation import urls

from trainium_local.cloudformation.wire import CloudFormationResponse


def install() -> None:
    """Take the place of moto's CloudFormation. Once, before the server takes its first request."""
    # moto's engine skips unknown types, swallows failures, gives no outputs and leaves things behind
    urls.url_paths["{0}/$"] = CloudFormationResponse.dispatch
