"""Rules for EC2 nodes: capacity, placement, addresses, image, software and setup script. They apply to every plan."""

from collections.abc import Iterator
from ipaddress import IPv4Network

from trainium_core.catalog.neuron_software import default_image, image_facts
from trainium_core.facts import facts
from trainium_core.plan.network_layout import addresses_needed, node_subnet_addresses
from trainium_core.plan.rules import nodes
from trainium_core.plan.rules.rule import Rule, rule_decorator
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

RULES: list[Rule] = []
rule = rule_decorator(RULES)


@rule("instance_type", "catalog", "capacity")
def type_supports_capacity(plan: PlanValues) -> Iterator[Problem]:
    yield from nodes.usage_class_is_supported(plan.type, plan.capacity, plan.catalog, field="capacity")


@rule("capacity", "reservation_id")
def reservation_matches_capacity(plan: PlanValues) -> Iterator[Problem]:
    yield from nodes.reservation_given(plan.capacity, plan.reservation_id, field="reservation_id")


@rule("capacity", "nodes")
def nodes_fit_capacity_block(plan: PlanValues) -> Iterator[Problem]:
    yield from nodes.block_nodes(plan.nodes, plan.capacity, field="nodes")


@rule("capacity", "placement_group")
def placement_group_excludes_capacity_block(plan: PlanValues) -> Iterator[Problem]:
    yield from nodes.block_placement(plan.network.placement_group, plan.capacity, field="placement_group")


@rule("instance_type", "catalog", "nodes")
def several_nodes_need_efa(plan: PlanValues) -> Iterator[Problem]:
    yield from nodes.nodes_with_efa(plan.nodes, plan.type, plan.catalog, field="nodes")


@rule("instance_type", "catalog", "nodes", "vpc_id", "vpc_cidr", "secondary_interface_type")
def nodes_fit_subnet(plan: PlanValues) -> Iterator[Problem]:
    needed, available = addresses_needed(plan), node_subnet_addresses(plan)
    if needed > available:
        per_node = needed // plan.nodes
        in_new_vpc = plan.network.vpc_id is None
        shortest = facts()["subnet"]["largest_prefix"]
        can_grow = in_new_vpc and IPv4Network(plan.network.vpc_cidr).prefixlen > shortest
        remedies = [f"trn:vpc_cidr to a larger block, up to /{shortest}"] if can_grow else []
        remedies += ["trn:secondary_interface_type to efa-only"] if per_node > 1 else []
        subnet = "the subnet's" if in_new_vpc else "the largest possible subnet's"
        yield Problem(
            key="nodes",
            got=plan.nodes,
            allowed=f"up to {available // per_node}: each node needs {per_node} of {subnet} {available} addresses",
            fix="reduce trn:nodes" + (f", or set {' or '.join(remedies)}" if remedies else ""),
        )


@rule("ami", "ami_parameter")
def image_parameter_requires_image_id(plan: PlanValues) -> Iterator[Problem]:
    if plan.ami_parameter is not None and plan.ami_is_parameter:
        fix = "remove it; `trn image pin` then sets both trn:ami and trn:ami_parameter"
        yield Problem(key="ami_parameter", got=plan.ami_parameter, allowed="nothing unless trn:ami is an ID", fix=fix)


@rule("neuron_software", "egress", "vpc_id")
def install_requires_internet(plan: PlanValues) -> Iterator[Problem]:
    if plan.node.neuron_software == "install" and plan.network.effective_egress not in ("nat-gateway", "existing"):
        yield Problem(
            key="neuron_software",
            got=plan.node.neuron_software,
            allowed="install only where nodes reach the internet",
            fix="set trn:egress to nat-gateway, or use a Neuron DLAMI and remove the setting",
        )


@rule("neuron_software", "instance_type", "catalog")
def install_requires_neuron_devices(plan: PlanValues) -> Iterator[Problem]:
    yield from nodes.software_for_devices(plan.node.neuron_software, plan.type, field="neuron_software")


@rule("ami", "instance_type", "catalog")
def image_is_for_devices(plan: PlanValues) -> Iterator[Problem]:
    other_prefix = image_facts(gpus=not plan.type.is_gpu)["parameter_prefix"]
    if plan.image.startswith(other_prefix):
        allowed = f"an image for {plan.type.device_noun}, which {plan.instance_type} has"
        fix = f"remove it to use {default_image(plan.type)}, or name another image"
        yield Problem(key="ami", got=plan.ami, allowed=allowed, fix=fix)


@rule("neuron_software", "ami", "instance_type", "catalog")
def install_requires_bare_image(plan: PlanValues) -> Iterator[Problem]:
    if plan.node.neuron_software == "install" and plan.image.startswith(image_facts(gpus=False)["parameter_prefix"]):
        bare = facts()["bare_images"]["parameters"]
        yield Problem(
            key="ami",
            got=plan.image,
            allowed="an image without Neuron software, with trn:neuron_software=install",
            fix=f"set trn:ami to {' or '.join(bare.values())}, or to the ID of an image made from one",
        )


@rule("neuron_software", "ami", "instance_type", "catalog")
def image_has_neuron_software(plan: PlanValues) -> Iterator[Problem]:
    if plan.node.neuron_software == "image" and plan.image.startswith(tuple(facts()["bare_images"]["publishers"])):
        fix = "set trn:neuron_software to install, or remove trn:ami"
        yield Problem(key="ami", got=plan.image, allowed="an image with driver, runtime and tools", fix=fix)


@rule("metrics_port", "metrics_security_group")
def metrics_security_group_requires_port(plan: PlanValues) -> Iterator[Problem]:
    if plan.node.metrics_security_group is not None and plan.node.metrics_port is None:
        got, fix = plan.node.metrics_security_group, "set trn:metrics_port too, such as 9400, or remove it"
        yield Problem(key="metrics_security_group", got=got, allowed="no value without trn:metrics_port", fix=fix)


@rule("node_recovery", "node_replacements")
def replacements_need_recovery(plan: PlanValues) -> Iterator[Problem]:
    if not plan.node.recovery and plan.node.replacements != SETTINGS["node_replacements"].default:
        yield Problem(
            key="node_replacements",
            got=plan.node.replacements,
            allowed="no value with trn:node_recovery=off",
            fix="remove it: without recovery, failed nodes are not replaced",
        )


@rule("setup_script")
def setup_script_is_valid_bash(plan: PlanValues) -> Iterator[Problem]:
    yield from nodes.script_for_bash(plan.setup_script, field="setup_script")
