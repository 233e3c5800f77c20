"""Images and the parameters that name them."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image; `root_volume_gib` is the size its root volume has at least."""

    image_id: str
    state: str
    root_device_name: str
    root_volume_gib: int


class Images(Protocol):
    def parameter(self, name: str) -> str | None: ...

    def image(self, image_id: str) -> Image | None: ...
