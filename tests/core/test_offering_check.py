"""Whether the zone of the nodes offers their type."""

from dataclasses import replace

from tests.core.fake_account import FakeAccount
from tests.core.fake_network import SUBNET
from tests.core.findings import finding_of
from tests.core.plans import EXISTING_VPC


def test_zone_that_offers_the_type_passes_without_a_promise() -> None:
    finding = finding_of("offering", FakeAccount(), availability_zone_id="usw2-az4")
    assert finding.outcome == "pass"
    assert finding.found == "usw2-az4 offers trn1.32xlarge, but capacity is not guaranteed"


def test_zone_without_the_type_fails_with_zones_that_have_it() -> None:
    finding = finding_of("offering", FakeAccount(zones=["usw2-az4", "usw2-az2"]), availability_zone_id="usw2-az1")
    assert finding.outcome == "fail"
    assert finding.found.endswith("zones of us-west-2 that do: usw2-az2, usw2-az4")
    assert finding.fix == "set trn:availability_zone_id to usw2-az2 or usw2-az4, or choose another type"


def test_type_that_no_zone_offers_has_only_the_advice_of_another_type() -> None:
    assert finding_of("offering", FakeAccount(zones=[])).fix == "choose another type"


def test_zone_of_an_existing_subnet_is_used() -> None:
    assert finding_of("offering", FakeAccount(zones=["usw2-az4"]), **EXISTING_VPC).outcome == "pass"
    assert finding_of("offering", FakeAccount(zones=["usw2-az1"]), **EXISTING_VPC).outcome == "fail"


def test_existing_subnet_must_be_in_the_zone_of_the_plan() -> None:
    account = FakeAccount(found_subnet=replace(SUBNET, zone_id="usw2-az4"))
    finding = finding_of("offering", account, **EXISTING_VPC, availability_zone_id="usw2-az1")
    assert finding.outcome == "fail"
    assert "set trn:availability_zone_id to usw2-az4" in finding.fix
