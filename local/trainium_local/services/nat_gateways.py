"""NAT gateways: moto makes the interface of one before it looks for its address, and never deletes it."""

from typing import Any

from moto.ec2.models.nat_gateways import NatGatewayBackend

from trainium_local.services.errors import Refused

_moto_create_nat_gateway = NatGatewayBackend.create_nat_gateway
_moto_delete_nat_gateway = NatGatewayBackend.delete_nat_gateway


def create_nat_gateway(backend: Any, subnet_id: str, allocation_id: str, *arguments: Any, **named: Any) -> Any:
    if allocation_id:
        address = next((one for one in backend.addresses if one.allocation_id == allocation_id), None)
        if address is None:
            raise Refused("InvalidAllocationID.NotFound", f"The allocation ID '{allocation_id}' does not exist")
        if address.association_id:
            message = f"Elastic IP address [{allocation_id}] is already associated"
            raise Refused("Resource.AlreadyAssociated", message)
    return _moto_create_nat_gateway(backend, subnet_id, allocation_id, *arguments, **named)


def delete_nat_gateway(backend: Any, nat_gateway_id: str) -> Any:
    gateway = _moto_delete_nat_gateway(backend, nat_gateway_id)
    backend.enis.pop(gateway._eni.id, None)
    backend.tags.pop(nat_gateway_id, None)
    return gateway
