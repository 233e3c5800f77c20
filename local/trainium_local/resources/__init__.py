"""Resource types of CloudFormation, provisioned through the services of the embedded AWS itself."""

from __future__ import annotations

from trainium_local.environment import Connection
from trainium_local.resources import (
    api,
    autoscaling,
    cloud_control,
    custom_resource,
    derived_types,
    ec2_compute,
    ec2_network,
    ec2_security_groups,
    events,
    generic,
    iam,
    lambda_function,
    operations,
    registry,
    route53,
    s3,
    storage,
    wait_condition,
)

_FAMILIES = (
    autoscaling,
    custom_resource,
    ec2_compute,
    ec2_network,
    ec2_security_groups,
    events,
    generic,
    iam,
    lambda_function,
    operations,
    route53,
    s3,
    storage,
    wait_condition,
)


def install(connection: Connection) -> None:
    """Register all types; they are provisioned through the API at the other end of `connection`."""
    api.connect(connection)
    for resource_type, provisioner in derived_types.types().items():
        registry.register(resource_type, provisioner)
    for family in _FAMILIES:
        for resource_type, provisioner in family.TYPES.items():
            registry.register(resource_type, provisioner)
    registry.register_fallback(generic.STORE)
    cloud_control.install()
