"""PcsStack: Slurm, its queues, its nodes, and their image."""

from trainium_core.facts import facts
from trainium_core.setting_schema.forms import Choice, ListOf, Pattern, Switch, WholeNumber
from trainium_core.setting_schema.setting import resource_id, section, setting

_PCS = facts()["pcs"]
_QUEUE = "[A-Za-z][A-Za-z0-9-]{2,24}(:[0-9]{1,5})?"
_QUEUE_FORM = "a queue name of 3 to 25 letters, digits and hyphens that begins with a letter, alone or as name:priority"


@section
class PcsSettings:
    """Settings of PcsStack. The type, number and purchase of its nodes are settings of every plan."""

    slurm_version: str = setting(
        "pcs_slurm_version",
        Pattern(r"[0-9]{2}\.[0-9]{2}", "a Slurm version, such as 26.05", choices=tuple(_PCS["versions"])),
        default=_PCS["default_version"],
        meaning="Slurm version of the AWS PCS cluster",
    )
    accounting: bool = setting(
        "pcs_accounting",
        Switch(),
        default=False,
        meaning="whether Slurm records jobs (sacct); AWS bills accounting separately",
    )
    min_nodes: int = setting(
        "pcs_min_nodes",
        WholeNumber(0),
        default=0,
        meaning="minimum number of running nodes, with or without jobs; trn:nodes is the maximum",
    )
    idle_minutes: int = setting(
        "pcs_idle_minutes",
        WholeNumber(1, 10080),
        default=10,
        meaning="minutes without a job after which a node is terminated, down to trn:pcs_min_nodes nodes",
    )
    queues: tuple[str, ...] = setting(
        "pcs_queues",
        ListOf(Pattern(_QUEUE, _QUEUE_FORM), f"a list, or a text separated by commas: {_QUEUE_FORM}", least=1),
        default=("trn",),
        default_text="one queue, trn",
        meaning="Slurm queues, the default queue first; jobs in a queue with a higher priority start first",
    )
    login: bool = setting(
        "pcs_login",
        Switch(),
        default=True,
        meaning="whether there is a login node, reached with Session Manager; `trn run` submits jobs through it",
    )
    login_instance_type: str = setting(
        "pcs_login_instance_type",
        Choice(tuple(_PCS["login_types"])),
        default=_PCS["login_types"][0],
        meaning="instance type of the login node",
    )
    image: str | None = setting(
        "pcs_ami",
        resource_id("ami", "an image"),
        default=None,
        default_text="EC2 Image Builder adds the PCS agent and Slurm to the image of trn:ami",
        meaning="image with Neuron software, the PCS agent and Slurm, for all nodes of PcsStack",
        replaces_nodes=True,
    )
    interruptible: bool = setting(
        "pcs_interruptible",
        Switch(),
        default=False,
        meaning="whether the reservation in trn:reservation_id is interruptible; only with trn:capacity=reservation",
    )
