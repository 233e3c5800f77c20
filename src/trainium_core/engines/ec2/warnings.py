"""What the author of a plan for a cluster of EC2 instances should know although it can be deployed."""

from collections.abc import Iterator, Mapping

from trainium_core.catalog.neuron_software import frameworks
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.warnings import merged, pilot_warnings


def cluster_warnings(plan: Plan) -> Mapping[str, str]:
    """By the setting they are about."""
    return merged(_warnings(plan))


def _warnings(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.ami.startswith("/aws/service/neuron/") and plan.region in facts()["image"]["regions_without_parameters"]:
        yield (
            "ami",
            f"{plan.region} had no /aws/service/neuron parameters when last seen (2026-10-03): if the deployment "
            "cannot fetch the parameter, copy an image there and set trn:ami to its id",
        )
    yield from _framework_warnings(plan)
    if plan.network.effective_egress == "none":
        yield (
            "egress",
            "with trn:egress=none nodes reach S3 and nothing else: no sessions, no packages; what a job needs must be "
            "in the image or in S3",
        )
    egress = plan.network.effective_egress
    if plan.setup_script is not None and egress in ("vpc-endpoints", "none"):
        yield (
            "setup_script",
            f"with trn:egress={egress} the setup script has no internet: fetch what it needs from S3, "
            "or choose trn:egress=nat-gateway",
        )
    if plan.file_systems.fsx_lustre is not None:
        yield (
            "fsx_lustre",
            "no source says that Neuron images hold the Lustre client (mount.lustre): a node without it fails; install "
            "it into an image of your own first, and set trn:ami to that",
        )
    if plan.capacity == "capacity-block":
        yield (
            "capacity",
            "no source says whether a Capacity Block counts against the on-demand vCPU quota: leave room for it",
        )
    if plan.pilot.ends is None and plan.capacity != "capacity-block":
        yield (
            "ends",
            f"nothing ends the pilot: {plan.nodes} x {plan.instance_type} are billed until somebody runs `trn sleep` "
            "or destroys the stack; give trn:ends, such as 5d",
        )
    if plan.pilot.idle_minutes is not None and plan.capacity == "reservation":
        yield ("idle_minutes", "a reservation is billed on while its nodes sleep: cancel it where nobody needs it")
    yield from pilot_warnings(plan)
    advised = facts()["root_volume"]["default_gib"]
    if plan.root_volume_gib < advised:
        yield (
            "root_volume_gib",
            f"the Neuron documentation advises {advised} GiB or more; {plan.root_volume_gib} may fill up with "
            "compiled graphs",
        )
    if plan.network.vpc_id is not None and plan.network.route_table_id is None:
        yield (
            "route_table_id",
            f"nodes report to S3: {plan.network.subnet_id} must have a route there already, or give trn:route_table_id",
        )


def _framework_warnings(plan: Plan) -> Iterator[tuple[str, str]]:
    supported = next(one for one in frameworks().values() if one.is_pytorch and one.runs_on(plan.type.accelerator))
    if plan.framework and plan.framework.is_pytorch and plan.framework != supported:
        yield (
            "ami",
            f"{plan.framework.title} ended with Neuron SDK {plan.framework.last_release}; since "
            f"{supported.first_release} AWS supports {supported.title} on {plan.type.accelerator}: set trn:ami to the "
            f"id of an image whose name begins with {supported.image_names[0].rstrip(' *')!r}",
        )
    if plan.framework and plan.framework.stack == "native":
        yield (
            "ami",
            f"{plan.framework.title} keeps compiled graphs in a folder of each node, not in the bucket of the cluster: "
            "jobs of trn run share them through the bucket, other programs on a new node compile again",
        )
