"""The resources that AWS creates and deletes with VPCs, endpoints and NAT gateways."""

from typing import Any


def create_default_vpc(original: Any, backend: Any) -> Any:
    """Give the default VPC internet access (Amazon VPC User Guide, Default VPC components)."""
    vpc = original(backend)
    gateway = backend.create_internet_gateway()
    backend.attach_internet_gateway(gateway.id, vpc.id)
    (main,) = backend.describe_route_tables(filters={"vpc-id": [vpc.id], "association.main": ["true"]})
    backend.create_route(main.id, "0.0.0.0/0", gateway_id=gateway.id)
    return vpc


def delete_vpc(original: Any, backend: Any, vpc_id: str) -> Any:
    deleted = original(backend, vpc_id)
    for acl_id in [acl.id for acl in backend.network_acls.values() if acl.vpc_id == vpc_id and acl.default]:
        del backend.network_acls[acl_id]
    return deleted


def delete_vpc_endpoints(original: Any, backend: Any, vpce_ids: list[str] | None = None) -> None:
    for endpoint_id in vpce_ids or []:
        if endpoint := backend.vpc_end_points.get(endpoint_id):
            # AWS's default is Gateway; without a type, moto fails.
            endpoint.vpc_endpoint_type = endpoint.vpc_endpoint_type or "Gateway"
    original(backend, vpce_ids)
    for endpoint_id in vpce_ids or []:
        backend.vpc_end_points.pop(endpoint_id, None)
        backend.tags.pop(endpoint_id, None)


def delete_nat_gateway(original: Any, backend: Any, nat_gateway_id: str) -> Any:
    gateway = original(backend, nat_gateway_id)
    backend.enis.pop(gateway._eni.id, None)
    backend.tags.pop(nat_gateway_id, None)
    return gateway
