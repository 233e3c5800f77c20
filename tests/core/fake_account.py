"""An account in memory with the values of a test; ready for a deployment by default."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Self

from tests.core.fake_capacity import FakeCapacity
from tests.core.fake_file_systems import SERVICES, FakeFileSystems
from tests.core.fake_network import FakeNetwork
from tests.core.fake_prices import FakePrices
from tests.core.fake_quotas import FakeQuotas
from tests.core.fake_resource_use import FakeResourceUse
from trainium_core.aws.identity import Identity
from trainium_core.aws.images import Image
from trainium_core.aws.network import PlacementGroup
from trainium_core.aws.simulation import Calls, Denial
from trainium_core.stacks.deployed_stack import DeployedStack, StackContents
from trainium_runtime.naming import CLUSTER_TAG, PROJECT_TAG

IMAGE = Image(
    image_id="ami-0123456789abcdef0",
    name="Deep Learning AMI Neuron PyTorch 2.9 (Ubuntu 24.04) 20260817",
    description="PyTorch 2.9. Neuron SDK 2.31.1.",
    owner="amazon",
    architecture="x86_64",
    state="available",
    root_device_name="/dev/sda1",
    root_volume_gib=100,
)
VERSION_PARAMETER = "/cdk-bootstrap/{}/version"


@dataclass(kw_only=True)
class FakeAccount(FakeResourceUse, FakeNetwork, FakeFileSystems, FakeQuotas, FakeCapacity, FakePrices):
    """An account that is ready for a deployment, which answers for all of its parts.

    Attributes:
        unavailable: Names of the calls that fail.
        stack_status: Statuses of the existing stacks, by name.
        project_clusters: The clusters of the stacks that the plan's project deployed, by name of the stack.
    """

    endpoint: str | None = None
    zones: Collection[str] = ("usw2-az1", "usw2-az4")
    parameter_value: str | None = IMAGE.image_id
    found_image: Image | None = IMAGE
    other_images: Mapping[str, Image] = field(default_factory=dict[str, Image])
    bootstrap_version: str | None = "21"
    qualifier: str = "hnb659fds"
    contents: dict[str, StackContents] = field(default_factory=dict[str, StackContents])
    volume_key: str | None = None
    group: PlacementGroup | None = None
    has_budgets: bool = True
    buckets: Mapping[str, str] = field(default_factory=dict[str, str])
    denied: Mapping[str, Denial] = field(default_factory=dict[str, Denial])
    simulated: list[Calls] = field(default_factory=list[Calls])
    created: datetime = datetime(2026, 11, 21, tzinfo=UTC)
    stack_tags: Mapping[str, str] = field(default_factory=dict[str, str])
    project_clusters: Mapping[str, str] = field(default_factory=dict[str, str])
    stack_status: dict[str, str] = field(default_factory=lambda: {"CDKToolkit": "CREATE_COMPLETE"})

    @property
    def images(self) -> Self:
        return self

    budgets = simulation = stacks = images

    def identity(self) -> Identity:
        self._check_available("identity")
        return Identity(account="123456789012", arn="arn:aws:iam::123456789012:user/me", endpoint=self.endpoint)

    def zones_offering(self, instance_type: str) -> Collection[str]:
        assert instance_type
        self._check_available("offering")
        return self.zones

    def parameter(self, name: str) -> str | None:
        assert name.startswith("/")
        if name.startswith(SERVICES):
            return self.service_of_the_region(name)
        if name.startswith("/cdk-bootstrap/"):
            self._check_available("version")
            return self.bootstrap_version if name == VERSION_PARAMETER.format(self.qualifier) else None
        self._check_available("parameter")
        return self.parameter_value

    def image(self, image_id: str) -> Image | None:
        assert image_id.startswith("ami-")
        self._check_available("image")
        return self.other_images.get(image_id, self.found_image)

    def available(self, owner: str, name: str) -> Sequence[Image]:
        self._check_available("image")
        images = [image for image in self.other_images.values() if image.owner == owner]
        return [image for image in images if fnmatchcase(image.name, name)]

    def default_volume_key(self) -> str | None:
        self._check_available("volumes")
        return self.volume_key

    def placement_group(self, name: str) -> PlacementGroup | None:
        self._check_available("placement")
        return self.group if self.group and self.group.name == name else None

    def enabled(self, account: str) -> bool:
        assert account == "123456789012"
        self._check_available("budgets")
        return self.has_budgets

    def denials(self, principal: str, calls: Calls) -> Sequence[Denial]:
        assert principal.startswith("arn:aws:iam::123456789012:role/")
        self._check_available("simulation")
        self.simulated.append(calls)
        return [self.denied[action] for action in calls.actions if action in self.denied]

    def bucket_region(self, name: str) -> str | None:
        self._check_available("bucket")
        return self.buckets.get(name)

    def deployed_stack(self, name: str) -> DeployedStack | None:
        self._check_available("stack" if name.endswith("TrnClusterStack") else "bootstrap")
        status, tags = self.stack_status.get(name), self.stack_tags
        return DeployedStack(stack_id=name, status=status, created=self.created, tags=tags) if status else None

    def project_stacks(self, project_id: str) -> Mapping[str, DeployedStack]:
        self._check_available("stack")
        return {
            name: DeployedStack(
                stack_id=name,
                status="CREATE_COMPLETE",
                created=self.created,
                tags={PROJECT_TAG: project_id, CLUSTER_TAG: cluster},
            )
            for name, cluster in self.project_clusters.items()
        }

    def stack_contents(self, stack: DeployedStack) -> StackContents:
        self._check_available("template")
        return self.contents.get(stack.stack_id, StackContents(cluster="trn-pilot"))
