"""What is deleted is gone, and what AWS deletes with it.

moto keeps the network ACL of a deleted VPC, deleted VPC endpoints, and tags.
"""

from typing import Any


def delete_vpc(original: Any, backend: Any, vpc_id: str) -> Any:
    deleted = original(backend, vpc_id)
    for acl_id in [acl.id for acl in backend.network_acls.values() if acl.vpc_id == vpc_id and acl.default]:
        del backend.network_acls[acl_id]
    return deleted


def delete_vpc_endpoints(original: Any, backend: Any, vpce_ids: list[str] | None = None) -> None:
    for endpoint_id in vpce_ids or []:
        if endpoint := backend.vpc_end_points.get(endpoint_id):
            # What AWS takes a missing type for; moto fails on it.
            endpoint.vpc_endpoint_type = endpoint.vpc_endpoint_type or "Gateway"
    original(backend, vpce_ids)
    for endpoint_id in vpce_ids or []:
        backend.vpc_end_points.pop(endpoint_id, None)
        backend.tags.pop(endpoint_id, None)
