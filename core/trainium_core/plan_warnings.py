"""What is allowed in a plan but likely to surprise: told before anything is deployed, never a reason to refuse."""

from collections.abc import Iterator

from trainium_core.facts import facts
from trainium_core.plan import Plan

_NEURON_PARAMETERS = "/aws/service/neuron/"


def plan_warnings(plan: Plan) -> tuple[str, ...]:
    """Every warning about a plan, each one sentence or two."""
    return tuple(_warnings(plan))


def _warnings(plan: Plan) -> Iterator[str]:
    if plan.ami.startswith(_NEURON_PARAMETERS) and plan.region in facts()["image"]["regions_without_parameters"]:
        yield (
            f"{plan.region} was seen without the SSM parameters under {_NEURON_PARAMETERS}: "
            "copy a Neuron image there and give its id as trn:ami"
        )
    if plan.capacity == "capacity-block":
        yield "no source says whether a Capacity Block counts against the on-demand vCPU quota"
    advised = facts()["root_volume"]["default_gib"]
    if plan.root_volume_gib < advised:
        yield f"the Neuron documentation advises a root volume of {advised} GiB or more, not {plan.root_volume_gib}"
    if plan.effective_egress == "none":
        yield "trn:egress=none leaves no way to open a session on a node"
    if plan.setup_script is not None and plan.effective_egress in ("vpc-endpoints", "none"):
        yield f"trn:setup_script runs without the internet: trn:egress is {plan.effective_egress}"
    if plan.vpc_id is not None and plan.route_table_id is None:
        yield f"{plan.subnet_id} must already have a route to S3: nodes report there. Else give trn:route_table_id"
