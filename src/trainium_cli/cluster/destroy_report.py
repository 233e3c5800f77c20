"""What a teardown takes and keeps, and how it ended, as tables and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from trainium_cli.terminal import console, table
from trainium_core.costs.estimate import dollars
from trainium_core.teardown.account import StoredBytes
from trainium_core.teardown.inventory import Inventory, RetainedResource
from trainium_core.teardown.run import Outcome, others_sentence, verdict
from trainium_core.teardown.scope import Scope

_KIND_NAMES = {
    "AWS::S3::Bucket": "S3 bucket",
    "AWS::FSx::FileSystem": "FSx file system",
    "AWS::EFS::FileSystem": "EFS file system",
}
_GIB = 1024**3


def show_inventory(found: Inventory, scope: Scope, region: str) -> None:
    """What will go, what stays, what is not known and what is somebody else's."""
    screen = console()
    if found.going:
        screen.print(f"Of {scope.cluster} in {region} this goes:\n", style="bold")
        rows = [(one.what, one.name, one.detail) for one in found.going]
        screen.print(table(["What", "Name", ""], rows, wrapping=["Name", ""]))
    show_kept(found.kept, region)
    for reason in found.unknown:
        screen.print(f"\nunknown: {reason}", style="magenta")
    nodes_end = " Its nodes end." if any(one.what == "nodes" for one in found.going) else ""
    for stack in scope.shared:
        screen.print(f"\nThe stack {stack.name} stays: {others_sentence(stack)}.{nodes_end}", style="yellow")
        screen.print("With --whole-stacks it goes as a whole; or remove the cluster from its app, and deploy that.")
    for stack in scope.foreign:
        screen.print(f"\n{foreign_sentence(stack.name, stack.cluster, scope.cluster)}", style="yellow")


def show_kept(kept: Sequence[RetainedResource], region: str) -> None:
    if kept:
        screen = console()
        screen.print(f"\nThis is retained in {region}:\n", style="bold")
        rows = [(_kind(one), one.resource_id, _amount(one.stored), _month(one)) for one in kept]
        screen.print(table(["What", "Name", "Holds", "Per month"], rows, right=["Holds", "Per month"]))


def show_end(outcomes: Sequence[Outcome], cluster: str, region: str, *, kept: bool) -> None:
    """What stands in the way, if anything does, and the verdict. kept: whether something is retained."""
    screen = console()
    for outcome in outcomes:
        if outcome.counts and outcome.state != "done":
            screen.print(f"\n{outcome.step}: {outcome.state}: {outcome.message}", style="red")
    but = " but what is retained" if kept else ""
    sentences = {
        "gone": f"Nothing of {cluster} is left in {region}{but}. `trn audit` looks through every service.",
        "left": f"Something of {cluster} is left in {region}: do what stands above, then run `trn destroy` again.",
        "could not tell": f"Not all of {cluster} in {region} could be looked at, see above. `trn destroy` goes on.",
    }
    screen.print(f"\n{sentences[verdict(outcomes)]}", style="bold")


def foreign_sentence(name: str, owner: str | None, cluster: str) -> str:
    ownership = f"belongs to the cluster {owner}, not to {cluster}" if owner else "carries no tag trn:cluster"
    return f"The stack {name} {ownership}: it is left alone. For another cluster: -c trn:cluster_name=..."


def inventory_as_json(found: Inventory) -> dict[str, Any]:
    return {
        "going": [asdict(one) for one in found.going],
        "kept": [kept_as_json(one) for one in found.kept],
        "unknown": list(found.unknown),
    }


def kept_as_json(kept: RetainedResource) -> dict[str, Any]:
    return asdict(kept) | {"month_usd": None if kept.month_usd is None else float(kept.month_usd)}


def outcomes_as_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {"verdict": verdict(outcomes), "steps": [_outcome_as_json(outcome) for outcome in outcomes]}


def _outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    return {"step": outcome.step, "state": outcome.state, "message": outcome.message, "counts": outcome.counts}


def _kind(kept: RetainedResource) -> str:
    return _KIND_NAMES.get(kept.kind, kept.kind)


def _amount(stored: StoredBytes | None) -> str:
    if stored is None:
        return "unknown"
    least = "at least " if stored.at_least else ""
    return f"{least}{stored.count / _GIB:.2f} GiB" if stored.count >= _GIB / 100 else f"{least}{stored.count:,} bytes"


def _month(kept: RetainedResource) -> str:
    if kept.month_usd is None:
        return "unknown"
    least = "at least " if kept.stored and kept.stored.at_least else ""
    return f"{least}{dollars(kept.month_usd)}"
