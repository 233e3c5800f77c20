"""Warnings for plans and fleets: a fact, and its consequence or what to do."""

from collections.abc import Iterable, Iterator, Mapping

from trainium_core.catalog.neuron_software import pytorch_for
from trainium_core.facts import facts
from trainium_core.plan.values import PlanValues
from trainium_runtime.naming import CLUSTER_TAG

Warnings = Iterator[tuple[str, str]]
"""Warnings with the keys of their settings."""


def merged(warnings: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """The warnings of each setting as one text, without duplicates."""
    texts: dict[str, dict[str, None]] = {}
    for key, warning in warnings:
        texts.setdefault(key, {})[warning] = None
    return {key: "; ".join(of_key) for key, of_key in texts.items()}


def node_warnings(values: PlanValues) -> Warnings:
    """Warnings about nodes, their image and capacity, and the notices of their pilot."""
    for text in _image_warnings(values):
        yield "ami", text
    if values.file_systems.fsx_lustre is not None:
        yield (
            "fsx_lustre",
            "AWS does not document whether Neuron images include the Lustre client (mount.lustre), and a node without "
            "it fails: use an image that includes it",
        )
    if values.capacity == "capacity-block":
        yield (
            "capacity",
            "it is not documented whether a Capacity Block counts against the on-demand vCPU quota: leave room for it",
        )
    announced = {"the end of the pilot": values.pilot.ends, "the ends of jobs": values.pilot.job_notices}
    if values.pilot.notify_email is None and (ends := [end for end, wanted in announced.items() if wanted]):
        yield (
            "notify_email",
            f"no e-mail announces {' or '.join(ends)}: set notify_email, or subscribe to the topic in the outputs",
        )
    if values.pilot.budget_usd is not None:
        yield (
            "budget_usd",
            "AWS Budgets records nothing until the account's payer has activated the cost allocation tag "
            f"{CLUSTER_TAG}, and then lags by up to a day: set an end to stop the nodes in time",
        )
    advised = facts()["root_volume"]["default_gib"]
    if not values.type.is_gpu and values.root_volume_gib < advised:
        yield (
            "root_volume_gib",
            f"the Neuron documentation advises {advised} GiB or more; {values.root_volume_gib} may fill up with "
            "compiled graphs",
        )


def route_warnings(values: PlanValues) -> Warnings:
    """Warnings about the routes of an existing subnet, which a plan names by its ID."""
    if values.network.vpc_id is not None and values.network.route_table_id is None:
        yield (
            "route_table_id",
            f"nodes report to S3: {values.network.subnet_id} must have a route there already, or set "
            "trn:route_table_id",
        )


def _image_warnings(values: PlanValues) -> Iterator[str]:
    image, region, framework = values.image, values.region, values.framework
    if image.startswith("/aws/service/neuron/") and region in facts()["image"]["regions_without_parameters"]:
        yield (
            f"{region} had no /aws/service/neuron parameters on 2026-10-03, when last checked: if the deployment "
            "cannot fetch the parameter, copy an image there and specify its ID"
        )
    if framework and framework.support:
        supported = pytorch_for(values.type)
        if supported == framework:
            remedy = f"{values.instance_type} has no other stack for PyTorch, so measure on Trainium2 before you decide"
        else:
            name = supported.image_names[0].rstrip(" *")
            remedy = f"specify the ID of an image whose name begins with {name!r}; for a plan, `trn image pin` finds it"
        yield f"{framework.support}: {remedy}"
