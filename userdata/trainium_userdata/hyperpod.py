"""The lifecycle script of HyperPod instances, built from templates, and the locations that it reads."""

from importlib.resources import files

from trainium_core.facts import facts
from trainium_core.plan.node_settings import NodeSettings
from trainium_userdata.expectations import node_expectations
from trainium_userdata.script import TEMPLATES

_LOCATIONS_FILE = "places.env"


def hyperpod_files(node: NodeSettings, *, script: str, region: str, cache_url: str) -> dict[str, str]:
    """The lifecycle files by name: the script, which depends only on the node settings, and the locations it reads.

    Args:
        node: The settings of the node.
        script: Name of the script.
        region: Region of the compile cache; may be a CDK token.
        cache_url: S3 URL of the compile cache; may be a CDK token.
    """
    return {
        script: hyperpod_script(node),
        _LOCATIONS_FILE: f"TRN_REGION={region}\nTRN_CACHE_URL={cache_url}\n",
    }


def hyperpod_script(node: NodeSettings) -> str:
    """The lifecycle script of the instances, which is idempotent.

    It writes the environment, the URL of the compile cache, the shell profile, limits and reserved ports, and restarts
    slurmd if it is running.
    """
    return TEMPLATES.get_template("hyperpod.sh.j2").render(
        node=node,
        places_file=_LOCATIONS_FILE,
        expected=node_expectations(node),
        cache_place=(files("trainium_wire") / "cache_place.py").read_text().rstrip("\n"),
        limits=facts()["process_limits"],
        profile=TEMPLATES.get_template("profile.sh.j2").render().rstrip("\n"),
    )
