"""The Image Builder component that makes an image for AWS PCS from a Neuron image."""

import json

from trainium_core.facts import facts
from trainium_userdata.script import TEMPLATES

_BUILD_SECONDS = 2 * 60 * 60


def pcs_image_script(region: str) -> str:
    """The script that installs the agent of AWS PCS, and every Slurm version that a new cluster can have."""
    installers, versions = facts()["pcs"]["installers"], facts()["pcs"]["versions"]
    archives = [
        {**installers["agent"], "options": ""},
        *({**installers["slurm"][version], "options": "-y"} for version in versions),
    ]
    return TEMPLATES.get_template("pcs_image.sh.j2").render(
        region=region, installers=installers, archives=archives, versions=[*versions]
    )


def pcs_image_component(region: str) -> str:
    """The document of the component, as JSON."""
    step = {
        "name": "InstallAgentAndSlurm",
        "action": "ExecuteBash",
        "timeoutSeconds": _BUILD_SECONDS,
        "inputs": {"commands": [pcs_image_script(region)]},
    }
    return json.dumps({"schemaVersion": 1.0, "phases": [{"name": "build", "steps": [step]}]}, indent=1)
