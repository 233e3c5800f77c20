"""An account in memory that is ready for JOB by default."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.core.fake_prices import FakePrices
from tests.core.fake_quotas import FakeQuotas
from tests.core.jobs import ROLE
from trainium_core.engines.sagemaker.job_checks.account import Role
from trainium_core.facts import training_facts
from trainium_core.identity.caller import Identity
from trainium_core.permissions.simulation import Calls, Denial
from trainium_core.stacks.deployed_stack import DeployedStack
from trainium_runtime.quota import Quota

TRUSTED = Role(arn=ROLE, trusted_services={"sagemaker.amazonaws.com"})
OF_ALL_JOBS = (
    Quota(code="L-33A961FD", name=training_facts()["quotas"]["longest_run"], limit=432_000),
    Quota(code="L-C5A266EB", name=training_facts()["quotas"]["volume"], limit=1024),
)


def instances(limit: float, usage: str = "training job usage", instance_type: str = "trn1.32xlarge") -> Quota:
    return Quota(code="L-00000001", name=f"ml.{instance_type} for {usage}", limit=limit)


def quotas(*given: Quota) -> dict[str, Quota]:
    """By code and by name, so that both ways find them."""
    return {key: quota for quota in given for key in (quota.code, quota.name)}


OUTPUTS = {
    "RoleArn": ROLE,
    "SourceUrl": "s3://trn-bucket/source",
    "OutputUrl": "s3://trn-bucket/output",
    "CheckpointUrl": "s3://trn-bucket/checkpoints",
    "CacheUrl": "s3://cache-bucket/neuron-compile-cache",
}


@dataclass(kw_only=True)
class FakeSageMakerAccount(FakeQuotas, FakePrices):
    """`unavailable` names the questions that get no answer. denied: actions that the role may not take, by resource."""

    unavailable: Collection[str] = ()
    sagemaker: Mapping[str, Quota] = field(default_factory=lambda: quotas(instances(4), *OF_ALL_JOBS))
    found_role: Role | None = TRUSTED
    denied: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    image_is_there: bool = True
    buckets: Mapping[str, str] = field(
        default_factory=lambda: dict.fromkeys(("trn-bucket", "cache-bucket"), "us-west-2")
    )
    outputs: Mapping[str, str] | None = field(default_factory=lambda: OUTPUTS)

    def identity(self) -> Identity:
        self._check_available("identity")
        return Identity(account="123456789012", arn="arn:aws:iam::123456789012:user/me")

    def role(self, name: str) -> Role | None:
        assert "/" not in name
        self._check_available("role")
        return self.found_role

    def denials(self, principal: str, calls: Calls) -> Sequence[Denial]:
        assert principal == ROLE
        self._check_available("simulation")
        (resource,) = calls.resources
        return [Denial(action=action) for action in calls.actions if action in self.denied.get(resource, ())]

    def has_image(self, *, account: str, region: str, repository: str, reference: Mapping[str, str]) -> bool:
        assert (len(account), region, bool(repository), len(reference)) == (12, "us-west-2", True, 1)
        self._check_available("image")
        return self.image_is_there

    def bucket_region(self, name: str) -> str | None:
        self._check_available("buckets")
        return self.buckets.get(name)

    def deployed_stack(self, name: str) -> DeployedStack | None:
        self._check_available("stack")
        if self.outputs is None:
            return None
        created = datetime(2026, 11, 21, tzinfo=UTC)
        return DeployedStack(stack_id=name, status="CREATE_COMPLETE", created=created, outputs=self.outputs)
