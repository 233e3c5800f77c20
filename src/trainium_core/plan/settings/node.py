"""What is done on a node, how long it may take, and what happens to a node that fails."""

from typing import Literal, get_args

from trainium_core.facts import facts
from trainium_core.plan.node_checks import NODE_CHECKS
from trainium_core.setting_schema.forms import Choice, Names, Switch, WholeNumber
from trainium_core.setting_schema.setting import section, setting

NeuronSoftware = Literal["image", "install"]
NEURON_SOFTWARE: tuple[NeuronSoftware, ...] = get_args(NeuronSoftware)
Verification = Literal["enforce", "observe"]
VERIFICATION: tuple[Verification, ...] = get_args(Verification)


@section
class Node:
    """Alike for every node."""

    timeout_minutes: int = setting(
        "node_timeout_minutes",
        WholeNumber(1, facts()["custom_resource"]["timeout_minutes"] - 5),
        default=50,
        meaning="minutes the deployment waits for every node to prove itself, replacements included",
    )
    neuron_software: NeuronSoftware = setting(
        "neuron_software",
        Choice(NEURON_SOFTWARE),
        default="image",
        left_out="{} (a Neuron DLAMI has everything; nothing is downloaded)",
        meaning="where driver, runtime and tools are from; install is for a bare Ubuntu 24.04 or Amazon Linux 2023",
        replaces_nodes=True,
    )
    suppress_checks: tuple[str, ...] = setting(
        "suppress_checks",
        Names(tuple(NODE_CHECKS)),
        default=(),
        left_out="none",
        meaning="checks of a node that are made and shown, but do not fail it",
    )
    verification: Verification = setting(
        "verification",
        Choice(VERIFICATION),
        default="enforce",
        meaning="observe: only missing devices, missing cores and wrong numbers fail a node, all else is a warning",
    )
    recovery: bool = setting(
        "node_recovery",
        Switch(),
        default=True,
        meaning="whether a node that fails is replaced, at deployment and after",
    )
    replacements: int = setting(
        "node_replacements",
        WholeNumber(0, 100),
        default=2,
        meaning="failed nodes that are replaced within 24 hours; the next one fails the deployment, and stays",
    )
    internode_ssh: bool = setting(
        "internode_ssh",
        Switch(),
        default=False,
        meaning="whether nodes may log on to each other over SSH, for MPI and nccom-test across nodes",
        replaces_nodes=True,
    )
    generation: int = setting(
        "node_generation",
        WholeNumber(1),
        default=1,
        meaning="another number replaces all nodes at the next deployment: newest image, node program and tags",
        replaces_nodes=True,
    )
