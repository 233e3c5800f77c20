"""Use of quotas, counted in moto; many pages are stubbed."""

from typing import Any

import pytest

from tests.core.aws_stubs import REGION, stubbed
from trainium_core.aws.account import AwsAccount
from trainium_core.aws.resource_use import UsedAmount

pytestmark = pytest.mark.usefixtures("made_up_credentials")

OWN_TAGS = [{"Key": "trn:cluster", "Value": "mine"}]


@pytest.fixture
def network(ec2: Any) -> dict[str, str]:
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24", AvailabilityZoneId="usw2-az1")["Subnet"]["SubnetId"]
    return {"vpc": vpc, "subnet": subnet}


def test_nat_gateways_are_counted_by_zone(account: AwsAccount, ec2: Any, network: dict[str, str]) -> None:
    gateways = [
        ec2.create_nat_gateway(SubnetId=network["subnet"], ConnectivityType="private")["NatGateway"]["NatGatewayId"]
        for _ in range(2)
    ]
    ec2.create_tags(Resources=gateways[:1], Tags=OWN_TAGS)
    assert account.resource_use.nat_gateways_excluding("mine", zone_id="usw2-az1") == UsedAmount(amount=1)
    assert account.resource_use.nat_gateways_excluding("another", zone_id="usw2-az1") == UsedAmount(amount=2)
    assert account.resource_use.nat_gateways_excluding("another", zone_id="usw2-az2") == UsedAmount(amount=0)
    assert account.resource_use.nat_gateways_excluding("another", zone_id=None) == UsedAmount(amount=2)


def test_only_gp3_volumes_count_by_their_size(account: AwsAccount, ec2: Any) -> None:
    zone = f"{REGION}a"
    own = ec2.create_volume(AvailabilityZone=zone, Size=256, VolumeType="gp3")["VolumeId"]
    ec2.create_volume(AvailabilityZone=zone, Size=512, VolumeType="gp3")
    ec2.create_volume(AvailabilityZone=zone, Size=512, VolumeType="gp2")
    ec2.create_tags(Resources=[own], Tags=OWN_TAGS)
    assert account.resource_use.gp3_tib_excluding("mine") == UsedAmount(amount=0.5)
    assert account.resource_use.gp3_tib_excluding("another") == UsedAmount(amount=0.75)


@pytest.mark.parametrize(("pages", "complete"), [(20, True), (21, False)])
def test_count_of_more_than_twenty_pages_is_incomplete(pages: int, complete: bool) -> None:
    account, stub = stubbed("ec2")
    for number in range(min(pages, 20)):
        more = {"NextToken": str(number)} if number + 1 < pages else {}
        stub.add_response("describe_network_interfaces", {"NetworkInterfaces": [{}], **more})
    assert account.resource_use.network_interfaces_excluding("mine") == UsedAmount(amount=20, complete=complete)
    stub.assert_no_pending_responses()
