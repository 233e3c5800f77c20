"""A default VPC reaches the internet (Amazon VPC User Guide, Default VPC components)."""

from typing import Any


def create_default_vpc(original: Any, backend: Any) -> Any:
    vpc = original(backend)
    gateway = backend.create_internet_gateway()
    backend.attach_internet_gateway(gateway.id, vpc.id)
    (main,) = backend.describe_route_tables(filters={"vpc-id": [vpc.id], "association.main": ["true"]})
    backend.create_route(main.id, "0.0.0.0/0", gateway_id=gateway.id)
    return vpc
