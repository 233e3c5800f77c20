"""Where a job finds its image, its role and its buckets, and what it costs."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.core.fake_prices import FakePrices
from tests.core.fake_sagemaker_account import OUTPUTS
from tests.core.jobs import JOB, ROLE, TRAINING_PLAN, small_plan
from tests.core.plans import from_settings
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.engines.sagemaker.jobs.cost import job_estimate
from trainium_core.engines.sagemaker.jobs.images import image_tags, parsed_image, training_image
from trainium_core.engines.sagemaker.jobs.locations import locations_from_outputs, locations_in_bucket
from trainium_core.jobs.problems import JobError


@pytest.mark.parametrize("region", builtin_catalog().regions)
def test_every_region_with_trainium_has_a_training_image(region: str) -> None:
    image = parsed_image(training_image(region))
    assert image is not None
    assert (image.region, image.repository) == (region, "pytorch-training-neuronx")
    assert "sdk2.30.0" in (image.tag or "")


def test_an_earlier_image_can_be_chosen_by_its_tag() -> None:
    last, earlier = image_tags()[:2]
    assert training_image("us-west-2").endswith(f":{last}")
    assert training_image("us-west-2", earlier).endswith(f":{earlier}")


def test_a_region_without_training_images_is_reported_with_a_way_out() -> None:
    with pytest.raises(JobError, match="--image"):
        training_image("eu-north-1")


@pytest.mark.parametrize("text", ["", "python:3", "1.dkr.ecr.us-west-2.amazonaws.com/x:1", "public.ecr.aws/neuron/x:1"])
def test_another_text_is_no_image_of_ecr(text: str) -> None:
    assert parsed_image(text) is None


def test_the_stack_reports_every_place() -> None:
    network = {"SubnetIds": "subnet-1, subnet-2", "SecurityGroupIds": "sg-1"}
    places = locations_from_outputs({**OUTPUTS, **network, "CacheUrl": "s3://c/x/"})
    assert (places.role_arn, places.cache_url) == (ROLE, "s3://c/x")
    assert (places.subnet_ids, places.security_group_ids) == (("subnet-1", "subnet-2"), ("sg-1",))


def test_a_stack_without_a_network_puts_jobs_in_none() -> None:
    assert locations_from_outputs(OUTPUTS).subnet_ids == ()


def test_another_stack_is_named_as_such() -> None:
    with pytest.raises(JobError, match="it lacks OutputUrl, CacheUrl"):
        locations_from_outputs({name: OUTPUTS[name] for name in ("RoleArn", "SourceUrl", "CheckpointUrl")})


def test_a_bucket_of_your_own_has_a_folder_for_each() -> None:
    places = locations_in_bucket("mine", role_arn=ROLE)
    urls = {places.source_url, places.output_url, places.checkpoint_url, places.cache_url}
    assert len(urls) == 4
    assert all(url.startswith("s3://mine/") for url in urls)


@pytest.mark.parametrize("text", ["s3://mine", "mine/folder", "Mine", "x"])
def test_what_is_no_name_of_a_bucket_is_reported_by_its_option(text: str) -> None:
    with pytest.raises(JobError, match=f"--bucket: got '{text}'"):
        locations_in_bucket(text, role_arn=ROLE)


def test_the_snapshot_has_the_one_price_that_aws_has_stated() -> None:
    estimated = job_estimate(small_plan(), replace(JOB, max_hours=2), aws=None)
    assert (estimated.running_hour.usd, estimated.pilot.usd) == (Decimal("1.54"), Decimal("3.08"))


def test_no_doubtful_price_is_taken_for_one() -> None:
    assert job_estimate(from_settings(), JOB, aws=None).running_hour.unknown == 1


def test_each_instance_costs() -> None:
    assert job_estimate(from_settings(nodes=3), JOB, aws=FakePrices()).running_hour.usd == 3


def test_spot_has_no_list_price() -> None:
    only_on_demand = FakePrices(usd={"sagemaker-spot-training": None})
    assert job_estimate(from_settings(), replace(JOB, spot=True), aws=only_on_demand).running_hour.unknown == 1


def test_a_training_plan_costs_nothing_more() -> None:
    estimated = job_estimate(from_settings(), replace(JOB, training_plan_arn=TRAINING_PLAN), aws=None)
    assert (estimated.lines, estimated.running_hour.unknown) == ((), 0)
