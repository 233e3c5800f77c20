"""The same plan in several regions."""

from tests.core.fake_account import IMAGE, FakeAccount
from tests.core.plans import from_settings
from trainium_core.facts import facts
from trainium_core.plan.settings_by_key import setting_value
from trainium_core.preflight.finding import verdict
from trainium_core.preflight.runner import plan_in, preflight_in_regions

PLAN = from_settings(nodes=2, availability_zone_id="usw2-az1")
ZONES = {"us-west-2": ["usw2-az1"], "us-east-2": ["use2-az3"]}


def test_each_region_is_queried_by_its_own_account() -> None:
    def account_in(region: str) -> FakeAccount:
        return FakeAccount(zones=ZONES[region], limit=0 if region == "us-east-2" else 256)

    results = preflight_in_regions(PLAN, ZONES, account_in)
    assert {region: verdict(findings) for region, findings in results.items()} == {
        "us-west-2": "ready",
        "us-east-2": "not ready",
    }


def test_pinned_image_becomes_its_parameter_in_another_region() -> None:
    parameter = facts()["image"]["ssm_parameter"]
    pinned = from_settings(ami=IMAGE.image_id, ami_parameter=parameter)
    assert plan_in(pinned, "us-west-2").ami == IMAGE.image_id
    assert (plan_in(pinned, "us-east-2").ami, plan_in(pinned, "us-east-2").ami_parameter) == (parameter, None)


def test_plan_in_another_region_loses_regional_settings() -> None:
    own = {
        "sagemaker_image": "123456789012.dkr.ecr.us-west-2.amazonaws.com/team/training:1.0",
        "sagemaker_kms_key": "arn:aws:kms:us-west-2:123456789012:key/01234567-89ab-cdef-0123-456789abcdef",
        "hyperpod_training_plan": "arn:aws:sagemaker:us-west-2:123456789012:training-plan/january",
    }
    elsewhere = plan_in(from_settings(**own), "us-east-1")
    assert [setting_value(elsewhere, key) for key in own] == [None] * len(own)
