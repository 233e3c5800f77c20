"""NAT gateways: moto makes the interface of one before it looks for its address, and never deletes it."""

from typing import Any

from trainium_local.services.errors import refusal


def create_nat_gateway(
    original: Any, backend: Any, subnet_id: str, allocation_id: str, *arguments: Any, **named: Any
) -> Any:
    if allocation_id:
        address = next((one for one in backend.addresses if one.allocation_id == allocation_id), None)
        if address is None:
            raise refusal("address-unknown", address=allocation_id)
        if address.association_id:
            raise refusal("address-already-associated", address=allocation_id)
    return original(backend, subnet_id, allocation_id, *arguments, **named)


def delete_nat_gateway(original: Any, backend: Any, nat_gateway_id: str) -> Any:
    gateway = original(backend, nat_gateway_id)
    backend.enis.pop(gateway._eni.id, None)
    backend.tags.pop(nat_gateway_id, None)
    return gateway
