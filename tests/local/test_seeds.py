"""The contents of a new account: Neuron images and parameters, and consistent zones."""

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.facts import facts

WITHOUT = set(facts()["image"]["regions_without_parameters"])
WITH = [region for region in builtin_catalog().regions if region not in WITHOUT]
DEFAULT = facts()["image"]["ssm_parameter"]


@pytest.mark.parametrize("region", WITH)
def test_default_image_resolves_in_every_region_with_parameters(embedded_aws: EmbeddedAws, region: str) -> None:
    image = embedded_aws.client("ssm", region).get_parameter(Name=DEFAULT)["Parameter"]["Value"]
    (shown,) = embedded_aws.client("ec2", region).describe_images(ImageIds=[image])["Images"]
    assert shown["Name"].startswith("Deep Learning AMI Neuron")
    assert "Neuron SDK 2.31.1" in shown["Description"]
    assert shown["ImageOwnerAlias"] == "amazon"


@pytest.mark.parametrize("region", sorted(WITHOUT))
def test_region_without_parameters_lacks_the_default_one(embedded_aws: EmbeddedAws, region: str) -> None:
    with pytest.raises(ClientError) as error:
        embedded_aws.client("ssm", region).get_parameter(Name=DEFAULT)
    assert error.value.response["Error"]["Code"] == "ParameterNotFound"


@pytest.mark.parametrize("region", sorted(WITHOUT))
def test_region_without_parameters_has_an_image(embedded_aws: EmbeddedAws, region: str) -> None:
    neuron = [{"Name": "name", "Values": ["Deep Learning AMI Neuron*"]}]
    (image,) = embedded_aws.client("ec2", region).describe_images(Owners=["amazon"], Filters=neuron)["Images"]
    assert (image["Name"], image["CreationDate"][:10]) == (
        "Deep Learning AMI Neuron (Ubuntu 24.04) 20260126",
        "2026-01-26",
    )


def test_image_of_amazon_linux_has_its_root_device(embedded_aws: EmbeddedAws) -> None:
    name = "/aws/service/neuron/dlami/base/amazon-linux-2023/latest/image_id"
    image = embedded_aws.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    (shown,) = embedded_aws.client("ec2").describe_images(ImageIds=[image])["Images"]
    assert shown["RootDeviceName"] == "/dev/xvda"


def test_parameters_are_found_by_path(embedded_aws: EmbeddedAws) -> None:
    pages = embedded_aws.client("ssm").get_paginator("get_parameters_by_path")
    names = [
        p["Name"] for page in pages.paginate(Path="/aws/service/neuron", Recursive=True) for p in page["Parameters"]
    ]
    assert DEFAULT in names


def test_image_id_differs_by_region(embedded_aws: EmbeddedAws) -> None:
    ids = {embedded_aws.client("ssm", r).get_parameter(Name=DEFAULT)["Parameter"]["Value"] for r in WITH}
    assert len(ids) == len(WITH)


def test_region_outside_the_catalogue_lacks_the_default_parameter(embedded_aws: EmbeddedAws) -> None:
    with pytest.raises(ClientError, match="ParameterNotFound"):
        embedded_aws.client("ssm", "eu-north-1").get_parameter(Name=DEFAULT)


@pytest.mark.parametrize(
    "name",
    [
        "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64",
        "/aws/service/ecs/optimized-ami/amazon-linux-2023/neuron/recommended/image_id",
    ],
)
def test_public_parameter_of_moto_names_an_existing_image(embedded_aws: EmbeddedAws, name: str) -> None:
    image = embedded_aws.client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    (shown,) = embedded_aws.client("ec2").describe_images(ImageIds=[image])["Images"]
    assert shown["Architecture"] == "x86_64"


@pytest.mark.parametrize("region", builtin_catalog().regions)
def test_subnet_can_be_created_in_every_zone_of_the_catalogue(embedded_aws: EmbeddedAws, region: str) -> None:
    ec2 = embedded_aws.client("ec2", region)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    zones = sorted({zone for entry in builtin_catalog().values() for zone in entry.zones.get(region, ())})
    made = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{i}.0/24", AvailabilityZoneId=zone)["Subnet"]
        for i, zone in enumerate(zones)
    ]
    assert [subnet["AvailabilityZoneId"] for subnet in made] == zones


@pytest.mark.parametrize("region", builtin_catalog().regions)
def test_offerings_by_zone_name_equal_those_by_zone_id(embedded_aws: EmbeddedAws, region: str) -> None:
    ec2 = embedded_aws.client("ec2", region)
    names = {zone["ZoneId"]: zone["ZoneName"] for zone in ec2.describe_availability_zones()["AvailabilityZones"]}

    def offered(by: str) -> set[tuple[str, str]]:
        pages = ec2.get_paginator("describe_instance_type_offerings").paginate(LocationType=by)
        offers = [offer for page in pages for offer in page["InstanceTypeOfferings"]]
        return {(o["InstanceType"], o["Location"]) for o in offers if o["InstanceType"] in builtin_catalog()}

    assert offered("availability-zone") == {(kind, names[zone]) for kind, zone in offered("availability-zone-id")}
