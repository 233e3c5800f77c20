"""CloudFormation resource types, provisioned through the services of the embedded AWS."""

from trainium_local.environment import Connection
from trainium_local.resources import api, custom_resource, image_builder, moto_models, registry, types


def install(connection: Connection) -> None:
    """Register all types. Adapters call the API at `connection`."""
    api.connect(connection)
    for resource_type, provisioner in (types.types() | custom_resource.TYPES | image_builder.TYPES).items():
        registry.register(resource_type, provisioner)
    registry.register_others(moto_models.types)
