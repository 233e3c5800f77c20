"""Warnings for plans and constructs: a fact, and its consequence or what to do."""

from collections.abc import Iterable, Iterator, Mapping

from trainium_core.catalog.instance_type import InstanceType
from trainium_core.catalog.neuron_software import Framework, pytorch_for
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.values import CapacityKind
from trainium_runtime.naming import CLUSTER_TAG

LUSTRE_CLIENT = (
    "AWS does not document whether Neuron images include the Lustre client (mount.lustre), and a node without it "
    "fails: use an image that includes it"
)
UNANNOUNCED_END = "no e-mail announces the end of the pilot: set notify_email, or subscribe to the topic in the outputs"
LATE_BUDGET = (
    "AWS Budgets records nothing until the account's payer has activated the cost allocation tag "
    f"{CLUSTER_TAG}, and then lags by up to a day: set an end to stop the nodes in time"
)


def merged(warnings: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """The warnings of each field as one text, without duplicates."""
    texts: dict[str, dict[str, None]] = {}
    for field, warning in warnings:
        texts.setdefault(field, {})[warning] = None
    return {field: "; ".join(of_field) for field, of_field in texts.items()}


def pilot_warnings(plan: Plan) -> Iterator[tuple[str, str]]:
    """Warnings about the end and the budget of a pilot whose nodes run until they are stopped."""
    if plan.pilot.ends is not None and plan.pilot.notify_email is None:
        yield "notify_email", UNANNOUNCED_END
    if plan.pilot.budget_usd is not None:
        yield "budget_usd", LATE_BUDGET


def image_warnings(image: str, region: str, framework: Framework | None, kind: InstanceType) -> Iterator[str]:
    """Warnings about an image.

    Args:
        image: ID or SSM parameter of the image.
        region: The region of the nodes.
        framework: The framework that the parameter promises, if any.
        kind: The instance type.
    """
    if image.startswith("/aws/service/neuron/") and region in facts()["image"]["regions_without_parameters"]:
        yield (
            f"{region} had no /aws/service/neuron parameters on 2026-10-03, when last checked: if the deployment "
            "cannot fetch the parameter, copy an image there and specify its ID"
        )
    if framework and framework.support:
        supported = pytorch_for(kind)
        if supported == framework:
            remedy = f"{kind.name} has no other stack for PyTorch, so measure on Trainium2 before you decide"
        else:
            name = supported.image_names[0].rstrip(" *")
            remedy = f"specify the ID of an image whose name begins with {name!r}; for a plan, `trn image pin` finds it"
        yield f"{framework.support}: {remedy}"


def capacity_warnings(capacity: CapacityKind) -> Iterator[str]:
    """Warnings about how instances are bought."""
    if capacity == "capacity-block":
        yield "it is not documented whether a Capacity Block counts against the on-demand vCPU quota: leave room for it"


def root_volume_warnings(gib: int) -> Iterator[str]:
    """Warnings about the size of a root volume."""
    advised = facts()["root_volume"]["default_gib"]
    if gib < advised:
        yield f"the Neuron documentation advises {advised} GiB or more; {gib} may fill up with compiled graphs"
