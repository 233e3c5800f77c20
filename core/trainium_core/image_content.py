"""What a Neuron image holds, as far as its parameter and its description tell."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from trainium_core.account.images import Image
from trainium_core.facts import facts


@dataclass(frozen=True, order=True)
class NeuronRelease:
    """A release of the Neuron SDK, such as 2.31.1."""

    numbers: tuple[int, ...]

    @classmethod
    def from_text(cls, text: str) -> "NeuronRelease":
        return cls(tuple(int(number) for number in text.split(".")))

    @property
    def holds_torch_neuronx(self) -> bool:
        """Whether Neuron images of this release may hold PyTorch/XLA; patches of the last such release do."""
        last = NeuronRelease.from_text(facts()["neuron_images"]["last_release_with_torch_neuronx"])
        return self.numbers[: len(last.numbers)] <= last.numbers

    def __str__(self) -> str:
        return ".".join(str(number) for number in self.numbers)


def neuron_release(image: Image) -> NeuronRelease | None:
    """The release that the image's description names, if it names one."""
    named = re.search(r"\bNeuron SDK v?([0-9]+(?:\.[0-9]+)+)", image.description)
    return NeuronRelease.from_text(named[1]) if named else None


def is_for_torch_neuronx(parameter: str | None) -> bool:
    """Whether who chose the parameter wants PyTorch/XLA on Trainium."""
    globs = facts()["neuron_images"]["parameters_for_torch_neuronx"]
    return any(_is_below_prefix(parameter, glob) for glob in globs)


def other_content(parameter: str | None) -> str | None:
    """What images of a Neuron parameter for other work hold; None for a parameter that the facts do not list."""
    contents = facts()["neuron_images"]["other_parameters"].items()
    return next((content for glob, content in contents if _is_below_prefix(parameter, glob)), None)


def _is_below_prefix(parameter: str | None, glob: str) -> bool:
    prefix = facts()["neuron_images"]["parameter_prefix"]
    return parameter is not None and fnmatchcase(parameter, prefix + glob)
