"""Checks that a destroyed cluster has left nothing: compares the resources of KINDS and the S3 objects by ID."""

from collections.abc import Mapping

from tools.demo.inventory import KINDS, OBJECTS, Inventory, added
from trainium_cli.terminal import Screen, table


class AccountChangedError(Exception):
    """The account has changed; the message lists the differences."""


def show_counts(screen: Screen, moments: Mapping[str, Inventory]) -> None:
    """Print the count of each kind at each time."""
    names = [*(kind.name for kind in KINDS), OBJECTS]
    counts = {name: [len(inventory[name]) for inventory in moments.values()] for name in names}
    rows = [[name, *(str(count) for count in of_kind)] for name, of_kind in counts.items() if any(of_kind)]
    screen.print(table(["Kind", *moments], rows, right=tuple(moments)))
    never = [name for name, of_kind in counts.items() if not any(of_kind)]
    if never:
        screen.print(f"None at any time: {', '.join(never)}.")


def refuse_unless_equal(before: Inventory, after: Inventory, *, uploads: str) -> int:
    """Compare two inventories by ID. Only the bucket of uploads may have more objects than before.

    Args:
        before: The inventory before the deployment.
        after: The inventory after the deletion.
        uploads: Name of the bucket of uploads.

    Returns:
        The number of objects that were added to the bucket.

    Raises:
        AccountChangedError: The inventories differ otherwise.
    """
    additions = added(before, after)
    uploaded = [resource for resource in additions if resource.startswith(f"{OBJECTS}: {uploads}/")]
    differences = [f"still there: {resource}" for resource in additions if resource not in uploaded]
    differences += [f"gone, and not the cluster's: {resource}" for resource in added(after, before)]
    if differences:
        raise AccountChangedError("\n".join(differences))
    return len(uploaded)
