"""Images and the parameters that name them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image; `root_volume_gib` is the size its root volume has at least.

    `owner` is `amazon` or an account id; `deprecated` the time from which AWS calls it so, if one is set.
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
    def parameter(self, name: str) -> str | None: ...

    def parameters_under(self, folder: str) -> Collection[str]:
        """The names of all parameters in a folder such as /cdk-bootstrap, at any depth."""
        ...

    def image(self, image_id: str) -> Image | None: ...
