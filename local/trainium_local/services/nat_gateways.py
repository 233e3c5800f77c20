"""NAT gateways: moto makes the interface of one before it looks for its address, and never deletes it."""

from typing import Any

from trainium_local.services.errors import Refused


def create_nat_gateway(
    original: Any, backend: Any, subnet_id: str, allocation_id: str, *arguments: Any, **named: Any
) -> Any:
    if allocation_id:
        address = next((one for one in backend.addresses if one.allocation_id == allocation_id), None)
        if address is None:
            raise Refused("InvalidAllocationID.NotFound", f"The allocation ID '{allocation_id}' does not exist")
        if address.association_id:
            message = f"Elastic IP address [{allocation_id}] is already associated"
            raise Refused("Resource.AlreadyAssociated", message)
    return original(backend, subnet_id, allocation_id, *arguments, **named)


def delete_nat_gateway(original: Any, backend: Any, nat_gateway_id: str) -> Any:
    gateway = original(backend, nat_gateway_id)
    backend.enis.pop(gateway._eni.id, None)
    backend.tags.pop(nat_gateway_id, None)
    return gateway
