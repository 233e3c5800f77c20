"""What must hold between capacity, placement, image and nodes of a cluster of EC2 instances."""

from collections.abc import Iterator
from functools import cache

from trainium_core.facts import facts
from trainium_core.plan.network_layout import addresses_needed, node_subnet_addresses
from trainium_core.plan.rules.rule import Rule, rule_of
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

_BASH_SECONDS = 10

RULES: list[Rule] = []
rule = rule_of(RULES)


@rule("instance_type", "catalog", "capacity")
def type_is_sold_that_way(plan: PlanValues) -> Iterator[Problem]:
    usage_class = "on-demand" if plan.capacity == "reservation" else plan.capacity
    if usage_class not in plan.type.usage_classes:
        sold = ", ".join(plan.type.usage_classes)
        yield Problem(
            key="capacity",
            got=plan.capacity,
            allowed=f"what {plan.instance_type} supports: {sold}",
            fix=f"choose {' or '.join(plan.type.usage_classes)}, or a type that supports {plan.capacity}: "
            + (", ".join(n for n, t in plan.catalog.items() if usage_class in t.usage_classes) or "none"),
        )


@rule("capacity", "reservation_id")
def reservation_goes_with_reserved_capacity(plan: PlanValues) -> Iterator[Problem]:
    reserved = plan.capacity in ("capacity-block", "reservation")
    if reserved and plan.reservation_id is None:
        yield Problem(
            key="reservation_id",
            got=None,
            allowed=SETTINGS["reservation_id"].form.allowed,
            fix=f"{plan.capacity} launches into something bought before: give its id, or choose on-demand or spot",
        )
    if not reserved and plan.reservation_id is not None:
        yield Problem(
            key="reservation_id",
            got=plan.reservation_id,
            allowed=f"nothing with capacity {plan.capacity}",
            fix="set trn:capacity to capacity-block or reservation, or remove the id",
        )


@rule("capacity", "nodes")
def nodes_fit_a_capacity_block(plan: PlanValues) -> Iterator[Problem]:
    largest = facts()["capacity_blocks"]["instances_per_block"]
    if plan.capacity == "capacity-block" and plan.nodes > largest:
        yield Problem(
            key="nodes",
            got=plan.nodes,
            allowed=f"up to {largest}: a Capacity Block holds no more instances",
            fix=f"ask for {largest} nodes or fewer",
        )


@rule("capacity", "placement_group")
def no_placement_group_with_a_capacity_block(plan: PlanValues) -> Iterator[Problem]:
    if plan.capacity == "capacity-block" and plan.network.placement_group is not None:
        yield Problem(
            key="placement_group",
            got=plan.network.placement_group,
            allowed="nothing with capacity capacity-block",
            fix="remove it: a Capacity Block places its instances close together by itself",
        )


@rule("instance_type", "catalog", "nodes")
def several_nodes_need_efa(plan: PlanValues) -> Iterator[Problem]:
    if plan.nodes > 1 and not plan.uses_efa:
        with_efa = [name for name, entry in plan.catalog.items() if entry.efa_interfaces]
        yield Problem(
            key="nodes",
            got=plan.nodes,
            allowed=f"1 with {plan.instance_type}, which has no EFA and cannot train across nodes",
            fix=f"set trn:nodes to 1, or choose a type with EFA: {', '.join(with_efa)}",
        )


@rule("instance_type", "catalog", "nodes", "vpc_id", "vpc_cidr", "secondary_interface_type")
def nodes_fit_the_subnet(plan: PlanValues) -> Iterator[Problem]:
    need, have = addresses_needed(plan), node_subnet_addresses(plan)
    if need > have:
        per_node = need // plan.nodes
        remedies = ["a larger trn:vpc_cidr"] if plan.network.vpc_id is None else []
        remedies += ["trn:secondary_interface_type=efa-only"] if per_node > 1 else []
        yield Problem(
            key="nodes",
            got=plan.nodes,
            allowed=f"up to {have // per_node}: each takes {per_node} of a subnet's {have} addresses",
            fix="ask for fewer nodes" + (f", or make room with {' or '.join(remedies)}" if remedies else ""),
        )


@rule("ami", "ami_parameter")
def pinned_image_is_an_id(plan: PlanValues) -> Iterator[Problem]:
    if plan.ami_parameter is not None and plan.ami_is_parameter:
        fix = "remove it, or let `trn image pin` write the id of the image into trn:ami"
        yield Problem(key="ami_parameter", got=plan.ami_parameter, allowed="nothing unless trn:ami is an id", fix=fix)


@rule("neuron_software", "egress", "vpc_id")
def installing_needs_the_internet(plan: PlanValues) -> Iterator[Problem]:
    if plan.node.neuron_software == "install" and plan.network.effective_egress not in ("nat-gateway", "existing"):
        yield Problem(
            key="neuron_software",
            got=plan.node.neuron_software,
            allowed="install only where nodes reach the internet",
            fix="set trn:egress to nat-gateway, or use a Neuron DLAMI and leave the setting out",
        )


@rule("neuron_software", "ami")
def installing_needs_a_bare_image(plan: PlanValues) -> Iterator[Problem]:
    if plan.node.neuron_software == "install" and plan.ami.startswith(facts()["neuron_images"]["parameter_prefix"]):
        bare = facts()["bare_images"]["parameters"]
        yield Problem(
            key="ami",
            got=plan.ami,
            allowed="a bare image with trn:neuron_software=install",
            fix=f"set trn:ami to {' or '.join(bare.values())}, or to the id of an image made from one",
        )


@rule("node_recovery", "node_replacements")
def replacements_need_recovery(plan: PlanValues) -> Iterator[Problem]:
    if not plan.node.recovery and plan.node.replacements != SETTINGS["node_replacements"].default:
        yield Problem(
            key="node_replacements",
            got=plan.node.replacements,
            allowed="nothing with trn:node_recovery=off",
            fix="remove it: no node is replaced",
        )


@rule("setup_script")
def setup_script_is_one_that_bash_can_read(plan: PlanValues) -> Iterator[Problem]:
    if plan.setup_script is None:
        return
    if "\r" in plan.setup_script:
        syntax_error, fix = "has carriage returns", "write its lines with line feeds alone, as Linux does"
    else:
        syntax_error, fix = bash_syntax_error(plan.setup_script), "try it with: bash -n"
    if syntax_error is not None:
        allowed = f"{SETTINGS['setup_script'].form.allowed}; this one: {syntax_error}"
        yield Problem(key="setup_script", got=plan.setup_script, allowed=allowed, fix=fix)


@cache
def bash_syntax_error(script: str) -> str | None:
    """The first complaint of `bash -n`; None when it has none, and where there is no bash to be asked."""
    import subprocess  # late: few plans have a script
    from shutil import which

    bash = which("bash")
    if bash is None:
        return None
    try:
        checked = subprocess.run(
            [bash, "-n"], input=script.encode(), capture_output=True, env={}, check=False, timeout=_BASH_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = checked.stderr.decode(errors="replace").strip().splitlines()
    if checked.returncode == 0:
        return None
    return lines[0].removeprefix(f"{bash}: ") if lines else f"exit code {checked.returncode}"
