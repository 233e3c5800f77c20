"""Machine images, the SSM parameters that contain their IDs, and their Neuron release."""

import re
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Protocol

from trainium_core.catalog.neuron_software import Framework, parameter_framework
from trainium_core.facts import facts


@dataclass(frozen=True, kw_only=True)
class Image:
    """A machine image.

    Attributes:
        owner: EC2's alias of the owner, such as `amazon`, else an account ID.
        root_volume_gib: Minimum size of its root volume.
        deprecated: Time of deprecation, if set.
    """

    image_id: str
    name: str
    description: str
    owner: str
    architecture: str
    state: str
    root_device_name: str
    root_volume_gib: int
    deprecated: datetime | None = None


class Images(Protocol):
    """Methods raise UnavailableError if a request fails or is denied."""

    def parameter(self, name: str) -> str | None:
        """The value of an SSM parameter; None if the parameter does not exist."""
        ...

    def image(self, image_id: str) -> Image | None:
        """The image of this ID; None if it does not exist."""
        ...


@dataclass(frozen=True, order=True)
class NeuronRelease:
    """A release of the Neuron SDK, such as 2.31.1."""

    numbers: tuple[int, ...]

    @classmethod
    def from_text(cls, text: str) -> "NeuronRelease":
        return cls(tuple(int(number) for number in text.split(".")))

    def may_contain(self, framework: Framework) -> bool:
        """Whether Neuron images of this release may contain the framework.

        Patch releases of the framework's last release may contain it too.
        """
        if framework.first_release and self < NeuronRelease.from_text(framework.first_release):
            return False
        last = NeuronRelease.from_text(framework.last_release) if framework.last_release else self
        return self.numbers[: len(last.numbers)] <= last.numbers

    def __str__(self) -> str:
        return ".".join(str(number) for number in self.numbers)


def neuron_release(image: Image) -> NeuronRelease | None:
    """The release in the image's description, if any."""
    match = re.search(r"\bNeuron SDK v?([0-9]+(?:\.[0-9]+)+)", image.description)
    return NeuronRelease.from_text(match[1]) if match else None


def other_content(parameter: str | None) -> str | None:
    """The content of a Neuron parameter's images if they lack PyTorch.

    None if they contain PyTorch, the parameter is not in the facts, or there is no parameter.
    """
    images = facts()["neuron_images"]
    if parameter is None:
        return None
    framework = parameter_framework(parameter)
    contents = images["other_parameters"].items()
    known = (content for glob, content in contents if fnmatchcase(parameter, images["parameter_prefix"] + glob))
    return next(known, framework.title if framework and not framework.is_pytorch else None)
