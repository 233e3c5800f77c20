"""Zones, and the user's own networks in them."""

from collections.abc import Collection
from typing import Protocol


class Network(Protocol):
    def zones_offering(self, instance_type: str) -> Collection[str]: ...

    def subnet_zone(self, *, subnet_id: str, vpc_id: str) -> str | None: ...
