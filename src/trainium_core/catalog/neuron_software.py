"""The frameworks on machine images, and the packages of Neuron releases, from data files."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, cast

from trainium_core.catalog.instance_type import InstanceType
from trainium_core.facts import DATA, facts


@cache
def neuron_packages() -> Mapping[str, Any]:
    """Packages, repositories, keys and compatibility rules, as in the data file."""
    return tomllib.loads((DATA / "neuron_packages.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True)
class Framework:
    """A framework on machine images.

    Attributes:
        stack: Its key: native or xla for PyTorch on Neuron images, jax, or cuda for PyTorch on GPU images.
        environment: On Neuron images, a part of the name of its virtual environment; on GPU images, the whole name.
        not_on: Accelerators that it does not support.
        parameters: Globs of the SSM parameters of its images, below the prefix of all images.
        image_names: Globs of the names of its images.
        gpus: Whether it runs on GPUs, not on Neuron devices.
        first_release: First release of the Neuron SDK with such images, such as 2.33; empty without a bound.
        last_release: Last release of the Neuron SDK with such images; empty without a bound.
        unsupported_since: First release of the Neuron SDK in which AWS does not support training with it; empty if AWS
            supports it.
    """

    stack: str
    title: str
    environment: str
    not_on: tuple[str, ...]
    parameters: tuple[str, ...]
    image_names: tuple[str, ...]
    gpus: bool = False
    first_release: str = ""
    last_release: str = ""
    unsupported_since: str = ""

    @property
    def support(self) -> str:
        """Since when AWS does not support training with it; empty if AWS supports it."""
        if not self.unsupported_since:
            return ""
        shipped = f"shipped it until {self.last_release}"
        return (
            f"AWS does not support training with {self.title} since Neuron SDK {self.unsupported_since}, and {shipped}"
        )

    @property
    def is_pytorch(self) -> bool:
        return self.stack != "jax"

    def runs_on(self, kind: InstanceType) -> bool:
        return kind.is_gpu == self.gpus and kind.accelerator not in self.not_on


@cache
def frameworks() -> Mapping[str, Framework]:
    """Every framework by its key, in order of preference."""
    entries = tomllib.loads((DATA / "neuron_software.toml").read_text(encoding="utf-8"))
    return {stack: Framework(stack=stack, **_values(entry)) for stack, entry in entries.items()}


def _values(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(cast("list[str]", value)) if isinstance(value, list) else value
        for key, value in entry.items()
        if key not in _PROVENANCE
    }


def parameter_framework(parameter: str | None) -> Framework | None:
    """The framework on images of an SSM parameter; None if the parameter matches none."""
    if parameter is None:
        return None
    return next((framework for framework in frameworks().values() if _is_named(parameter, framework)), None)


def _is_named(parameter: str, framework: Framework) -> bool:
    prefix = image_facts(gpus=framework.gpus)["parameter_prefix"]
    return any(fnmatchcase(parameter, prefix + glob) for glob in framework.parameters)


def image_facts(*, gpus: bool) -> Mapping[str, Any]:
    """Facts about AWS's images for instances with GPUs, or for instances with Neuron devices."""
    return facts()["gpu_images" if gpus else "neuron_images"]


def default_image(kind: InstanceType) -> str:
    """The SSM parameter of the image for plans that name no image."""
    return facts()["gpu_images" if kind.is_gpu else "image"]["ssm_parameter"]


def pytorch_for(kind: InstanceType) -> Framework:
    """The preferred framework with PyTorch on the type."""
    return next(framework for framework in frameworks().values() if framework.is_pytorch and framework.runs_on(kind))


def image_name_framework(name: str) -> Framework | None:
    """The framework on images with this name; None if the name matches none."""
    return next(
        (
            framework
            for framework in frameworks().values()
            if any(fnmatchcase(name, glob) for glob in framework.image_names)
        ),
        None,
    )


def image_system(name: str) -> str | None:
    """The operating system in the name of an image, such as Ubuntu 24.04; None if it names none."""
    match = re.search(r"(?:Ubuntu|Amazon Linux) [0-9.]+", name)
    return match[0] if match else None


_PROVENANCE = ("source", "date")
