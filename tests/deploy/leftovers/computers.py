"""Instances, and the resources that launch them."""

from collections.abc import Mapping
from typing import Any

from tests.deploy.leftovers.maker import Creator, Maker


def _instance(maker: Maker) -> str:
    parameters: dict[str, Any] = {"InstanceType": "t3.micro", "MinCount": 1, "MaxCount": 1}
    (image, *_) = maker.client("ec2").describe_images(Owners=["amazon"])["Images"]
    parameters |= {"ImageId": image["ImageId"], "SubnetId": maker.create_subnet()}
    parameters["TagSpecifications"] = maker.specification("instance")
    return maker.client("ec2").run_instances(**parameters)["Instances"][0]["InstanceId"]


def _reservation(maker: Maker) -> str:
    parameters = {"InstanceType": "trn1.2xlarge", "InstancePlatform": "Linux/UNIX", "AvailabilityZone": "us-west-2d"}
    parameters |= {"InstanceCount": 1, "TagSpecifications": maker.specification("capacity-reservation")}
    return maker.client("ec2").create_capacity_reservation(**parameters)["CapacityReservation"]["CapacityReservationId"]


def _placement_group(maker: Maker) -> str:
    parameters = {"GroupName": maker.name("placement"), "Strategy": "cluster"}
    maker.client("ec2").create_placement_group(**parameters, TagSpecifications=maker.specification("placement-group"))
    return maker.name("placement")


def _template(maker: Maker) -> str:
    parameters = {"LaunchTemplateName": maker.name("template"), "LaunchTemplateData": {"InstanceType": "t3.micro"}}
    made = maker.client("ec2").create_launch_template(
        **parameters, TagSpecifications=maker.specification("launch-template")
    )
    return made["LaunchTemplate"]["LaunchTemplateId"]


def _key_pair(maker: Maker) -> str:
    made = maker.client("ec2").create_key_pair(
        KeyName=maker.name("key"), TagSpecifications=maker.specification("key-pair")
    )
    return made["KeyPairId"]


COMPUTERS: Mapping[str, Creator] = {
    "EC2 instance": _instance,
    "capacity reservation": _reservation,
    "placement group": _placement_group,
    "launch template": _template,
    "key pair": _key_pair,
}
