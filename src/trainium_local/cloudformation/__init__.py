"""A CloudFormation engine on top of moto's services.

It refuses unknown types, properties, references and attributes. A failed creation or update is rolled back, and its
events have the reason. `trainium_local.resources` defines the resource types.
"""

from moto.cloudformation import urls

from trainium_local.cloudformation.nested import NestedStack
from trainium_local.cloudformation.stack import STACK
from trainium_local.cloudformation.wire import CloudFormationResponse
from trainium_local.resources import registry


def install() -> None:
    """Replace moto's CloudFormation, and register nested stacks. Call this once, before the server accepts requests."""
    # moto's engine skips unknown types, and does not roll back
    urls.url_paths["{0}/$"] = CloudFormationResponse.dispatch
    registry.register(STACK, NestedStack())
