"""An account in memory that answers what a test tells it, and counts as ready when told nothing."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from trainium_core.account import CannotTellError, Identity, Image, RunningInstance

IMAGE = Image(image_id="ami-0123456789abcdef0", state="available", root_device_name="/dev/sda1", root_volume_gib=100)


@dataclass(kw_only=True)
class FakeAccount:
    """`silent` names the questions that get no answer."""

    silent: Collection[str] = ()
    endpoint: str | None = None
    limit: float = 256
    running: Sequence[RunningInstance] = ()
    zones: Collection[str] = ("usw2-az1", "usw2-az4")
    zone_of_subnet: str | None = "usw2-az4"
    parameter_value: str | None = IMAGE.image_id
    found_image: Image | None = IMAGE
    stacks: dict[str, str] = field(default_factory=lambda: {"CDKToolkit": "CREATE_COMPLETE"})

    def _listen(self, question: str) -> None:
        if question in self.silent:
            raise CannotTellError(f"no answer about {question}")

    def identity(self) -> Identity:
        self._listen("identity")
        return Identity(account="123456789012", arn="arn:aws:iam::123456789012:user/me", endpoint=self.endpoint)

    def quota_limit(self, code: str) -> float:
        assert code.startswith("L-")
        self._listen("quota")
        return self.limit

    def running_instances(self, family: str) -> Sequence[RunningInstance]:
        assert family == "trn"
        self._listen("instances")
        return self.running

    def zones_offering(self, instance_type: str) -> Collection[str]:
        assert instance_type
        self._listen("offering")
        return self.zones

    def subnet_zone(self, *, subnet_id: str, vpc_id: str) -> str | None:
        assert subnet_id
        assert vpc_id
        self._listen("subnet")
        return self.zone_of_subnet

    def parameter(self, name: str) -> str | None:
        assert name.startswith("/")
        self._listen("parameter")
        return self.parameter_value

    def image(self, image_id: str) -> Image | None:
        assert image_id.startswith("ami-")
        self._listen("image")
        return self.found_image

    def stack_status(self, name: str) -> str | None:
        self._listen("stack" if name == "TrnClusterStack" else "bootstrap")
        return self.stacks.get(name)
