"""Asks SSM for parameters and EC2 for images."""

from trainium_core.account import Image
from trainium_core.adapters.aws_service import AwsService, asking


class AwsImages(AwsService):
    def parameter(self, name: str) -> str | None:
        with asking("ssm:GetParameter", absent=("ParameterNotFound", "not a valid namespace")):
            return self.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
        return None

    def image(self, image_id: str) -> Image | None:
        with asking("ec2:DescribeImages", absent=("InvalidAMIID.",)):
            for image in self.client("ec2").describe_images(ImageIds=[image_id])["Images"]:
                root = image.get("RootDeviceName", "none")
                volumes = [m for m in image.get("BlockDeviceMappings", []) if m.get("DeviceName") == root]
                size = sum(volume.get("Ebs", {}).get("VolumeSize", 0) for volume in volumes)
                return Image(image_id=image_id, state=image["State"], root_device_name=root, root_volume_gib=size)
        return None
