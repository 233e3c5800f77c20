"""AWS Deep Learning Containers for training on Trainium, by region, from data/training_images.toml."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from trainium_core.facts import DATA
from trainium_core.jobs.problems import JobError
from trainium_core.problems import Problem

_ECR_IMAGE = re.compile(
    r"(?P<account>[0-9]{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?/"
    r"(?P<repository>[a-z0-9._/-]+)(:(?P<tag>[A-Za-z0-9_.-]+)|@(?P<digest>sha256:[0-9a-f]{64}))"
)


@dataclass(frozen=True, kw_only=True)
class ContainerImage:
    """An image in ECR, by tag or by digest."""

    account: str
    region: str
    repository: str
    tag: str | None = None
    digest: str | None = None


def parsed_image(uri: str) -> ContainerImage | None:
    """The parts of the URI of an ECR image with a tag or a digest; None for any other text."""
    match = _ECR_IMAGE.fullmatch(uri)
    if match is None:
        return None
    return ContainerImage(**{name: match[name] for name in ("account", "region", "repository", "tag", "digest")})


def training_image(region: str) -> str:
    """The URI of the newest PyTorch training image for Neuron in the data file.

    Raises:
        JobError: The data file has no image for the region.
    """
    known = _images()
    account = known["accounts"].get(region)
    if account is None:
        raise JobError(
            [
                Problem(
                    key="region",
                    got=region,
                    allowed=f"a region with AWS's training images: {', '.join(known['accounts'])}",
                    fix="choose one of these, or name an image of your account in trn:sagemaker_image or trn:eks_image",
                )
            ]
        )
    return f"{account}.dkr.ecr.{region}.amazonaws.com/{known['repository']}:{known['tags'][0]}"


@cache
def _images() -> Mapping[str, Any]:
    return tomllib.loads((DATA / "training_images.toml").read_text(encoding="utf-8"))
