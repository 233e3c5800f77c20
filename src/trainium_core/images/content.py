"""What a Neuron image holds, as far as its parameter and its description show."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from trainium_core.catalog.neuron_software import Framework, framework_of_parameter
from trainium_core.facts import facts
from trainium_core.images.image import Image


@dataclass(frozen=True, order=True)
class NeuronRelease:
    """A release of the Neuron SDK, such as 2.31.1."""

    numbers: tuple[int, ...]

    @classmethod
    def from_text(cls, text: str) -> "NeuronRelease":
        return cls(tuple(int(number) for number in text.split(".")))

    def may_hold(self, framework: Framework) -> bool:
        """Whether Neuron images of this release may hold the framework; patches of its last release do."""
        if framework.first_release and self < NeuronRelease.from_text(framework.first_release):
            return False
        last = NeuronRelease.from_text(framework.last_release) if framework.last_release else self
        return self.numbers[: len(last.numbers)] <= last.numbers

    def __str__(self) -> str:
        return ".".join(str(number) for number in self.numbers)


def neuron_release(image: Image) -> NeuronRelease | None:
    """The release that the image's description names, if it names one."""
    named = re.search(r"\bNeuron SDK v?([0-9]+(?:\.[0-9]+)+)", image.description)
    return NeuronRelease.from_text(named[1]) if named else None


def other_content(parameter: str | None) -> str | None:
    """What images of a Neuron parameter without PyTorch hold; None for a parameter that the facts do not list."""
    images = facts()["neuron_images"]
    if parameter is None:
        return None
    framework = framework_of_parameter(parameter)
    contents = images["other_parameters"].items()
    known = (content for glob, content in contents if fnmatchcase(parameter, images["parameter_prefix"] + glob))
    return next(known, framework.title if framework and not framework.is_pytorch else None)
