"""What outlives a request: every dictionary, list and set that belongs into a saved state says so here."""

from typing import Any, TypeVar

Container = TypeVar("Container", bound="dict[Any, Any] | list[Any] | set[Any]")

_containers: dict[str, Any] = {}


def kept(name: str, container: Container) -> Container:
    """The container itself, which from now on is saved, and filled anew when a state is loaded."""
    _containers[name] = container
    return container


def contents() -> dict[str, Any]:
    """All containers by name."""
    return dict(_containers)


def restore(saved: dict[str, Any]) -> None:
    """Fill the containers with what `contents` gave; whoever holds one sees it change."""
    for name, container in _containers.items():
        container.clear()
        (container.extend if isinstance(container, list) else container.update)(saved[name])
