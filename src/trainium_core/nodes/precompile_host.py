"""The host of `trn precompile`, as its Auto Scaling group and its reports show it."""

from dataclasses import dataclass

OVER = "over"
"""State that a host reports when nothing is left to do."""


@dataclass(frozen=True, kw_only=True)
class HostState:
    """wanted: whether there is to be a host. instances: ids of those that are there. refusal: why none was launched."""

    wanted: bool
    instances: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def is_gone(self) -> bool:
        return not self.wanted and not self.instances
