"""The boot script of a plan, rendered from templates/."""

from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from trainium_core.facts import facts
from trainium_core.network_layout import network_interfaces
from trainium_core.plan import Plan
from trainium_userdata.places import NodePlaces

# No delimiter occurs in bash, where {{, {%, {#, << and [[ all do.
TEMPLATES = Environment(
    loader=PackageLoader("trainium_userdata"),
    undefined=StrictUndefined,
    variable_start_string="<{",
    variable_end_string="}>",
    block_start_string="<%",
    block_end_string="%>",
    comment_start_string="<#",
    comment_end_string="#>",
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
)
_VERIFY_NODE = (files("trainium_userdata") / "node" / "verify_node.py").read_text().rstrip("\n")


def node_user_data(plan: Plan, places: NodePlaces) -> str:
    """The user data of every node of the plan: one bash script, not base64-encoded, the same text every time.

    The script can run again after a reboot; so must `plan.setup_script`, which it runs each time.
    """
    setup_script = (plan.setup_script or "").rstrip("\n")
    return TEMPLATES.get_template("node.sh.j2").render(
        plan=plan,
        places=places,
        efa_devices=sum(interface.interface_type is not None for interface in network_interfaces(plan)),
        rendezvous_port=facts()["rendezvous"]["port"],
        verify_node=_VERIFY_NODE,
        setup_script=setup_script,
        setup_script_end=_delimiter(setup_script),
    )


def _delimiter(text: str) -> str:
    """A word to end a here-document with: no line of the text."""
    word, lines = "SETUP_SCRIPT", text.splitlines()
    while word in lines:
        word += "_"
    return word
