"""Rules for Slurm on AWS PCS. Rules about settings of every plan apply only if trn:stacks includes pcs."""

from collections.abc import Iterator

from trainium_core.facts import facts
from trainium_core.plan.rules.pilot import END_SETTINGS, end_without_sleep
from trainium_core.plan.rules.rule import Rule, engine_supports_type, rule_decorator
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

RULES: list[Rule] = []
rule = rule_decorator(RULES)

_PCS = facts()["pcs"]
_LOGIN_NODES = 1
_HIGHEST_PRIORITY = 65533  # slurm.conf: larger 16-bit values are reserved
_STACK = "with pcs in trn:stacks"


@rule("pcs_slurm_version")
def slurm_version_is_available(plan: PlanValues) -> Iterator[Problem]:
    version, offered = plan.pcs.slurm_version, _PCS["versions"]
    if version not in offered:
        ended = _PCS["ended"].get(version)
        reason = f"; a new cluster cannot have {version}, supported until {ended:%Y-%m-%d}" if ended else ""
        yield Problem(
            key="pcs_slurm_version",
            got=version,
            allowed=", ".join(offered) + reason,
            fix=f"set it to {_PCS['default_version']}, or remove it",
        )


@rule("pcs_min_nodes", "nodes")
def static_nodes_fit_nodes(plan: PlanValues) -> Iterator[Problem]:
    if plan.pcs.min_nodes > plan.nodes and "pcs" in plan.stacks:
        fix = "reduce it, or increase trn:nodes"
        yield Problem(key="pcs_min_nodes", got=plan.pcs.min_nodes, allowed=f"up to trn:nodes, {plan.nodes}", fix=fix)


@rule("pcs_queues")
def queues_are_valid(plan: PlanValues) -> Iterator[Problem]:
    names = [queue.partition(":")[0] for queue in plan.pcs.queues]
    most = _PCS["quotas"]["queues"]
    if len({name.casefold() for name in names}) < len(names):
        fix = "use a different name for each queue"
        yield Problem(key="pcs_queues", got=",".join(plan.pcs.queues), allowed="each name once, ignoring case", fix=fix)
    elif len(names) > most:
        allowed = f"up to {most} queues, the default quota of AWS PCS"
        yield Problem(key="pcs_queues", got=len(names), allowed=allowed, fix="name fewer queues")
    elif any(int(queue.partition(":")[2] or 0) > _HIGHEST_PRIORITY for queue in plan.pcs.queues):
        allowed, fix = f"priorities up to {_HIGHEST_PRIORITY}, as in Slurm", "choose lower priorities"
        yield Problem(key="pcs_queues", got=",".join(plan.pcs.queues), allowed=allowed, fix=fix)


@rule("stacks", "cluster_name")
def cluster_name_is_long_enough(plan: PlanValues) -> Iterator[Problem]:
    least = _PCS["least_name"]
    if "pcs" in plan.stacks and len(plan.cluster_name) < least:
        allowed = f"{least} characters or more {_STACK}"
        yield Problem(key="cluster_name", got=plan.cluster_name, allowed=allowed, fix="choose a longer name")


@rule("stacks", "nodes", "pcs_login")
def nodes_fit_largest_size(plan: PlanValues) -> Iterator[Problem]:
    most = max(size["nodes"] for size in _PCS["sizes"].values()) - _LOGIN_NODES * plan.pcs.login
    if "pcs" in plan.stacks and plan.nodes > most:
        yield Problem(key="nodes", got=plan.nodes, allowed=f"up to {most} {_STACK}", fix="reduce trn:nodes")


@rule("stacks", "instance_type", "catalog")
def pcs_requires_neuron_devices(plan: PlanValues) -> Iterator[Problem]:
    if plan.type.is_gpu:
        neuron = [name for name, kind in plan.catalog.items() if not kind.is_gpu]
        yield from engine_supports_type(neuron, plan, stack="pcs")


@rule("pcs_interruptible", "capacity")
def interruptible_requires_reservation(plan: PlanValues) -> Iterator[Problem]:
    if plan.pcs.interruptible and plan.capacity != "reservation":
        allowed = "off unless trn:capacity is reservation"
        fix = "set trn:capacity to reservation, or remove trn:pcs_interruptible"
        yield Problem(key="pcs_interruptible", got="on", allowed=allowed, fix=fix)


@rule("stacks", *END_SETTINGS)
def pcs_end_requires_destroy(plan: PlanValues) -> Iterator[Problem]:
    because = "its Slurm controller is billed until the stack is destroyed, and Slurm terminates idle nodes"
    fix = "use trn:pcs_idle_minutes instead, or deploy TrnClusterStack instead of PcsStack"
    yield from end_without_sleep(plan, "pcs", because=because, idle_fix=fix)


@rule("stacks", "neuron_software")
def pcs_requires_neuron_image(plan: PlanValues) -> Iterator[Problem]:
    if "pcs" in plan.stacks and plan.node.neuron_software == "install":
        yield Problem(
            key="neuron_software",
            got=plan.node.neuron_software,
            allowed=f"image, {_STACK}: its image already has the Neuron software",
            fix="remove it, and set trn:ami to a Neuron DLAMI or trn:pcs_ami to your image",
        )


@rule("stacks", "ami", "pcs_ami")
def image_recipe_requires_ubuntu(plan: PlanValues) -> Iterator[Problem]:
    prefix, system = facts()["neuron_images"]["parameter_prefix"], "ubuntu-24.04"
    other = plan.ami is not None and plan.ami.startswith(prefix) and f"/{system}/" not in plan.ami
    if "pcs" in plan.stacks and plan.pcs.image is None and other:
        yield Problem(
            key="ami",
            got=plan.ami,
            allowed=f"a Neuron DLAMI for Ubuntu 24.04 {_STACK}, to which the recipe adds Slurm",
            fix=f"name a parameter with /{system}/, or set trn:pcs_ami",
        )


@rule("stacks", "ami", "pcs_ami")
def image_builder_can_read_the_parameter(plan: PlanValues) -> Iterator[Problem]:
    readable: list[str] = _PCS["image_builder"]["parameters"]
    unreadable = plan.ami is not None and plan.ami.startswith("/") and not plan.ami.startswith(tuple(readable))
    if "pcs" in plan.stacks and plan.pcs.image is None and unreadable:
        allowed = f"the ID of an image, or a parameter below {' or '.join(readable)}, {_STACK}"
        fix = "set it to the ID of the image: EC2 Image Builder cannot read other parameters"
        yield Problem(key="ami", got=plan.ami, allowed=allowed, fix=fix)


@rule("stacks", "egress", "vpc_id")
def pcs_requires_its_api(plan: PlanValues) -> Iterator[Problem]:
    if "pcs" in plan.stacks and plan.network.effective_egress == "none":
        yield Problem(
            key="egress",
            got="none",
            allowed=f"nat-gateway, or vpc-endpoints with trn:pcs_ami, {_STACK}: nodes register with AWS PCS",
            fix="set it to nat-gateway, or remove it",
        )


@rule("stacks", "egress", "vpc_id", "pcs_ami")
def image_recipe_requires_internet(plan: PlanValues) -> Iterator[Problem]:
    closed = plan.network.vpc_id is None and plan.network.egress == "vpc-endpoints"
    if "pcs" in plan.stacks and plan.pcs.image is None and closed:
        yield Problem(
            key="egress",
            got="vpc-endpoints",
            allowed=f"nat-gateway, {_STACK} and without trn:pcs_ami: the build of the image downloads packages",
            fix="set trn:pcs_ami to an image with Slurm, or set trn:egress to nat-gateway",
        )
