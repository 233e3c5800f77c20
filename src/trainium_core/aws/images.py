"""Machine images, from EC2."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService


@dataclass(frozen=True, kw_only=True)
class Image:
    """A machine image.

    Attributes:
        owner: EC2's alias of the owner, such as `amazon`, else an account ID.
        root_volume_gib: Minimum size of its root volume.
        deprecated: Time of deprecation, if set.
    """

    image_id: str
    name: str
    description: str
    owner: str
    architecture: str
    state: str
    root_device_name: str
    root_volume_gib: int
    deprecated: datetime | None = None


class AwsImages(AwsService):
    def image(self, image_id: str) -> Image | None:
        """The image of this ID; None if it does not exist.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        with read_errors("ec2:DescribeImages", absent=("InvalidAMIID.",)):
            # EC2 can launch deprecated images of other accounts, but lists them only on request.
            images = self.client("ec2").describe_images(ImageIds=[image_id], IncludeDeprecated=True)["Images"]
            return _image(images[0]) if images else None
        return None

    def available(self, owner: str, name: str) -> Sequence[Image]:
        """The available x86_64 images of an owner by name, newest first.

        Args:
            owner: Alias or account ID.
            name: The name, or a pattern such as `Deep Learning AMI *`.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        wanted = {"name": name, "state": "available", "architecture": "x86_64"}
        filters: Any = [{"Name": key, "Values": [value]} for key, value in wanted.items()]
        with read_errors("ec2:DescribeImages"):
            pages = self.client("ec2").get_paginator("describe_images").paginate(Owners=[owner], Filters=filters)
            found = [entry for page in pages for entry in page["Images"]]
            return [_image(entry) for entry in sorted(found, key=lambda entry: entry["CreationDate"], reverse=True)]
        return []


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
