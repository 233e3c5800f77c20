"""Reads parameters from SSM and images from EC2."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainium_core.images.image import Image
from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService


class AwsImages(AwsService):
    """Implements trainium_core.images.image.Images."""

    def parameter(self, name: str) -> str | None:
        with read_errors("ssm:GetParameter", absent=("ParameterNotFound", "not a valid namespace")):
            return self.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
        return None

    def image(self, image_id: str) -> Image | None:
        with read_errors("ec2:DescribeImages", absent=("InvalidAMIID.",)):
            # EC2 can launch deprecated images of other accounts, but lists them only on request.
            images = self.client("ec2").describe_images(ImageIds=[image_id], IncludeDeprecated=True)["Images"]
            return _image(images[0]) if images else None
        return None


def _image(entry: Mapping[str, Any]) -> Image:
    root = entry.get("RootDeviceName", "none")
    volumes = [mapping for mapping in entry.get("BlockDeviceMappings", []) if mapping.get("DeviceName") == root]
    deprecated = entry.get("DeprecationTime")
    return Image(
        image_id=entry["ImageId"],
        name=entry.get("Name", ""),
        description=entry.get("Description", ""),
        owner=entry.get("ImageOwnerAlias") or entry["OwnerId"],
        architecture=entry["Architecture"],
        state=entry["State"],
        root_device_name=root,
        root_volume_gib=sum(volume.get("Ebs", {}).get("VolumeSize", 0) for volume in volumes),
        deprecated=datetime.fromisoformat(deprecated) if deprecated else None,
    )
