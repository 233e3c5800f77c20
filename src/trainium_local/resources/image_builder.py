"""EC2 Image Builder, which moto does not have: resources that exist only in their stacks, and images without a build.

Nothing is built: the new image is a copy of the parent image of its recipe.
"""

from typing import Any

from moto.ec2 import ec2_backends
from moto.ssm.models import ssm_backends

from trainium_core.facts import facts
from trainium_local.resources import api, handler_permissions
from trainium_local.resources.registry import Provisioned, ProvisioningError, ResourceRequest, ResourceType

_PREFIX = "AWS::ImageBuilder::"
_PARAMETER = "ssm:"
_NOTE = "Exists only in the stack: the embedded AWS has no EC2 Image Builder."
_IMAGE_NOTE = "Nothing was built: the image is a copy of the recipe's parent image."

_recipes: dict[str, str] = {}
"""The parent image of each recipe, by the ARN of the recipe."""


class _Part(ResourceType):
    """A resource that an image is built from.

    Args:
        kind: Its name in ARNs.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._existing: set[str] = set()

    def create(self, request: ResourceRequest) -> Provisioned:
        handler_permissions.refuse_unless_allowed(request, "create")
        properties = request.properties
        version = f"/{properties['Version']}" if "Version" in properties else ""
        arn = _arn(request, f"{self._kind}/{properties['Name'].lower()}{version}")
        if arn in self._existing:
            raise ProvisioningError(f"A resource of type {request.resource_type} with the ARN {arn} already exists.")
        self._existing.add(arn)
        if "ParentImage" in properties:
            _recipes[arn] = properties["ParentImage"]
        return Provisioned(physical_id=arn, attributes={"Arn": arn}, note=_NOTE)

    def delete(self, request: ResourceRequest, current: Provisioned) -> None:
        handler_permissions.refuse_unless_allowed(request, "delete")
        self._existing.discard(current.physical_id)
        _recipes.pop(current.physical_id, None)


class _Image(ResourceType):
    def create(self, request: ResourceRequest) -> Provisioned:
        handler_permissions.refuse_unless_allowed(request, "create")
        recipe = request.properties["ImageRecipeArn"]
        if recipe not in _recipes:
            raise ProvisioningError(f"The image recipe {recipe} does not exist.")
        name = recipe.split("/")[1]
        ec2 = _ec2(request)
        with api.lock:
            parent = _image_id(request, _recipes[recipe])
            if parent not in ec2.amis:
                raise ProvisioningError(f"The parent image {parent} does not exist.")
            image = ec2.copy_image(parent, request.region, name, f"a copy of {parent}")
        arn = _arn(request, f"image/{name}/1.0.0/1")
        return Provisioned(physical_id=arn, attributes={"Arn": arn, "ImageId": image.id}, note=_IMAGE_NOTE)

    def delete(self, request: ResourceRequest, current: Provisioned) -> None:
        """Delete the image and its snapshot, as with DeletionSettings."""
        handler_permissions.refuse_unless_allowed(request, "delete")
        ec2 = _ec2(request)
        with api.lock:
            image = ec2.amis[current.attributes["ImageId"]]
            ec2.deregister_image(image.id)
            ec2.delete_snapshot(image.ebs_snapshot.id)


def _ec2(request: ResourceRequest) -> Any:
    return ec2_backends[request.account][request.region]


def _arn(request: ResourceRequest, resource: str) -> str:
    return f"arn:aws:imagebuilder:{request.region}:{request.account}:{resource}"


def _image_id(request: ResourceRequest, parent: str) -> str:
    """The ID of a parent image, which may be `ssm:` and the name of a parameter."""
    if not parent.startswith(_PARAMETER):
        return parent
    name = parent.removeprefix(_PARAMETER)
    if not name.startswith(tuple(facts()["pcs"]["image_builder"]["parameters"])):
        raise ProvisioningError(
            f"AWSServiceRoleForImageBuilder is not authorized to perform ssm:GetParameter on {name}."
        )
    parameter = ssm_backends[request.account][request.region].get_parameter(name)
    if parameter is None:
        raise ProvisioningError(f"The SSM parameter {name} does not exist.")
    return str(parameter.value)


TYPES: dict[str, ResourceType] = {
    f"{_PREFIX}Component": _Part("component"),
    f"{_PREFIX}Image": _Image(),
    f"{_PREFIX}ImageRecipe": _Part("image-recipe"),
    f"{_PREFIX}InfrastructureConfiguration": _Part("infrastructure-configuration"),
}
