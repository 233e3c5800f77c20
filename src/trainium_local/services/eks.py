"""Amazon EKS: cluster security groups, add-ons and Pod Identity associations, which moto lacks.

Add-ons and associations are stored and have no effect, because there are no nodes and no Kubernetes API.
"""

import json
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2 import ec2_backends
from moto.eks import urls
from moto.moto_api._internal import mock_random

from trainium_local.services.errors import Refused, refusal

_ADD_ON, _ASSOCIATION = "addon", "association"
_KEYS = {_ADD_ON: "addonName", _ASSOCIATION: "associationId"}
_LAST_WITH_AL2 = (1, 32)
_PATHS = (
    "/addons$",
    "/addons/(?P<addonName>[^/]+)$",
    "/node-groups/(?P<nodegroupName>[^/]+)/update-version$",
    "/pod-identity-associations$",
    "/pod-identity-associations/(?P<associationId>[^/]+)$",
)


def install() -> None:
    """Add the URLs of the operations to moto's."""
    dispatch = next(iter(urls.url_paths.values()))
    urls.url_paths.update({"{0}/clusters/(?P<name>[^/]+)" + path: dispatch for path in _PATHS})


def create_cluster(original: Any, backend: Any, **arguments: Any) -> Any:
    """EKS creates a security group for the control plane and the nodes, in the VPC of the subnets."""
    cluster = original(backend, **arguments)
    ec2, network = ec2_backends[backend.account_id][backend.region_name], cluster.resources_vpc_config
    vpc = ec2.get_subnet(network["subnetIds"][0]).vpc_id
    name = f"eks-cluster-sg-{cluster.name}-{mock_random.get_random_hex(8)}"
    group = ec2.create_security_group(name, "EKS created security group", vpc_id=vpc)
    cluster.resources_vpc_config = {**network, "vpcId": vpc, "clusterSecurityGroupId": group.id}
    return cluster


def delete_cluster(original: Any, backend: Any, name: str) -> Any:
    cluster = original(backend, name)
    group = cluster.resources_vpc_config.get("clusterSecurityGroupId")
    if group is not None:
        ec2_backends[backend.account_id][backend.region_name].delete_security_group(group_id=group)
    return cluster


def create_nodegroup(original: Any, backend: Any, **arguments: Any) -> Any:
    cluster = backend.describe_cluster(name=arguments["cluster_name"])
    ami_type, version = arguments.get("ami_type") or "", tuple(int(part) for part in cluster.version.split("."))
    if ami_type.startswith("AL2_") and version > _LAST_WITH_AL2:
        raise refusal("ami-type-ended", ami_type=ami_type)
    return original(backend, **arguments)


def update_nodegroup_version(response: Any) -> ActionResult:
    """A new launch template version. No nodes are replaced."""
    group = response.eks_backend.describe_nodegroup(
        cluster_name=response._get_param("name"), nodegroup_name=response._get_param("nodegroupName")
    )
    group.launch_template = {**(group.launch_template or {}), **json.loads(response.body).get("launchTemplate", {})}
    return ActionResult({"update": {"id": mock_random.get_random_hex(8), "status": "Successful"}})


def create_addon(response: Any) -> ActionResult:
    return ActionResult({_ADD_ON: _create(response, _ADD_ON, {"status": "ACTIVE"})})


def delete_addon(response: Any) -> ActionResult:
    return ActionResult({_ADD_ON: _parts(response, _ADD_ON).pop(_key(response, _ADD_ON))})


def describe_addon(response: Any) -> ActionResult:
    return ActionResult({_ADD_ON: _parts(response, _ADD_ON)[_key(response, _ADD_ON)]})


def create_pod_identity_association(response: Any) -> ActionResult:
    body = json.loads(response.body)
    for other in _parts(response, _ASSOCIATION).values():
        if all(other[name] == body[name] for name in ("namespace", "serviceAccount")):
            raise Refused("ResourceInUseException", f"Association already exists: {other['associationId']}")
    return ActionResult(
        {_ASSOCIATION: _create(response, _ASSOCIATION, {"associationId": f"a-{mock_random.get_random_hex(17)}"})}
    )


def describe_pod_identity_association(response: Any) -> ActionResult:
    return ActionResult({_ASSOCIATION: _parts(response, _ASSOCIATION)[_key(response, _ASSOCIATION)]})


def delete_pod_identity_association(response: Any) -> ActionResult:
    return ActionResult({_ASSOCIATION: _parts(response, _ASSOCIATION).pop(_key(response, _ASSOCIATION))})


def list_pod_identity_associations(response: Any) -> ActionResult:
    return ActionResult({"associations": [*_parts(response, _ASSOCIATION).values()]})


def _create(response: Any, kind: str, more: dict[str, Any]) -> dict[str, Any]:
    parts, cluster = _parts(response, kind), response._get_param("name")
    part = {**json.loads(response.body), **more, "clusterName": cluster}
    key = part[_KEYS[kind]]
    if key in parts:
        raise Refused("ResourceInUseException", f"The cluster {cluster} already has {key}")
    path = "addon" if kind == _ADD_ON else "podidentityassociation"
    arn = f"arn:aws:eks:{response.region}:{response.current_account}:{path}/{cluster}/{key}"
    parts[key] = {**part, f"{kind}Arn": arn}
    return parts[key]


def _parts(response: Any, kind: str) -> dict[str, dict[str, Any]]:
    """The add-ons or associations of the cluster of a request, by name or ID."""
    cluster = response.eks_backend.describe_cluster(name=response._get_param("name"))
    return vars(cluster).setdefault(f"trn_{kind}s", {})


def _key(response: Any, kind: str) -> str:
    key = response._get_param(_KEYS[kind])
    if key not in _parts(response, kind):
        raise Refused("ResourceNotFoundException", f"No {kind} found for: {key}")
    return key
