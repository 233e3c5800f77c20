"""The Neuron release of a machine image, and the content of the images of SSM parameters."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from trainium_core.catalog.neuron_software import Framework, parameter_framework
from trainium_core.facts import facts


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


def neuron_release(description: str) -> NeuronRelease | None:
    """The release in the description of an image, if any."""
    match = re.search(r"\bNeuron SDK v?([0-9]+(?:\.[0-9]+)+)", description)
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
