"""SageMaker's quotas are found by name. A known code makes the list unnecessary if its quota has that name."""

from tests.core.fake_quotas import FakeQuotas
from tests.core.plans import from_settings
from trainium_core.engines.sagemaker.quota_check import instance_quota
from trainium_core.facts import facts
from trainium_runtime.quota import Quota

NAME = "ml.trn1.32xlarge for training job usage"
CODE = "L-79A1FE57"


def quota(code: str, name: str = NAME) -> Quota:
    return Quota(code=code, name=name, limit=4)


def test_known_code_makes_the_list_unnecessary() -> None:
    account = FakeQuotas(sagemaker={CODE: quota(CODE)}, unavailable={"names"})
    assert instance_quota(from_settings(instance_type="trn1.32xlarge"), account) == (NAME, quota(CODE))


def test_code_of_another_quota_is_not_used() -> None:
    other = quota(CODE, "ml.t3.medium for training job usage")
    account = FakeQuotas(sagemaker={CODE: other, NAME: quota("L-00000001")})
    assert instance_quota(from_settings(instance_type="trn1.32xlarge"), account) == (NAME, quota("L-00000001"))


def test_type_without_known_code_is_found_by_name() -> None:
    name = "ml.trn2.48xlarge for training job usage"
    account = FakeQuotas(sagemaker={name: quota("L-00000002", name)}, unavailable={"quota"})
    plan = from_settings(instance_type="trn2.48xlarge", region="us-east-2")
    assert instance_quota(plan, account) == (name, quota("L-00000002", name))


def test_every_known_code_has_a_known_usage() -> None:
    endings = facts()["sagemaker_quotas"]["usages"].values()
    assert all(name.split(" for ")[1] in endings for name in facts()["sagemaker_quotas"]["codes"])
