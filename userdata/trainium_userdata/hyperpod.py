"""What HyperPod puts onto its instances: a lifecycle script of the same parts as the boot script of a node."""

from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_userdata.expectations import node_expectations
from trainium_userdata.node_files import CACHE_PLACE
from trainium_userdata.script import TEMPLATES

_LOCATIONS = "places.env"


def hyperpod_files(plan: Plan, *, script: str, region: str, cache_url: str) -> dict[str, str]:
    """The lifecycle files by name: `script`, which depends on the plan alone, and the locations that it reads.

    region, cache_url: of the compile cache; may be CDK tokens.
    """
    return {
        script: hyperpod_script(plan),
        _LOCATIONS: f"TRN_REGION={region}\nTRN_CACHE_URL={cache_url}\n",
    }


def hyperpod_script(plan: Plan) -> str:
    """The lifecycle script of the instances of a plan: environment, cache, limits, reserved ports. It can run again."""
    return TEMPLATES.get_template("hyperpod.sh.j2").render(
        plan=plan,
        places_file=_LOCATIONS,
        expected=node_expectations(plan),
        cache_place=CACHE_PLACE.read_text().rstrip("\n"),
        limits=facts()["process_limits"],
        profile=TEMPLATES.get_template("profile.sh.j2").render().rstrip("\n"),
    )
