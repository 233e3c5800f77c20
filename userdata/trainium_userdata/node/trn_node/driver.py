"""Whether the Neuron driver is loaded and, after the tests, whether it is compatible with the runtime."""

from __future__ import annotations

import re
from typing import Any

from . import files
from .check import Check
from .programs import run

SECONDS = 30
RUNTIME = "aws-neuronx-runtime-lib"
EXPECTED = "loaded, and compatible with the runtime"


def check_driver(plan: dict[str, Any]) -> Check:
    loaded = files.read("sys/module/neuron/version").strip()
    installed = run("modinfo", "-F", "version", "neuron", seconds=SECONDS).out.strip()
    runtime = runtime_version()
    if not loaded:
        if files.path("sys/module/neuron").exists():
            return failed_check("version unknown", "the Neuron driver does not show its version")
        if installed:
            return failed_check(
                f"{installed} not loaded", f"the Neuron driver {installed} is not loaded", may_heal=True
            )
        return failed_check("not installed", "the Neuron driver (aws-neuronx-dkms) is not installed for this kernel")
    if installed and installed != loaded:
        found = f"{loaded} loaded, {installed} installed"
        problem = f"the Neuron driver {loaded} is loaded, but {installed} is installed: reload it, or reboot"
        return failed_check(found, problem, may_heal=True)
    found = f"driver {loaded}, " + (f"runtime {runtime}" if runtime else "no runtime on the host")
    if not runtime and plan.get("framework"):
        return failed_check(found, f"the Neuron runtime ({RUNTIME}) is not installed")
    return Check("driver", EXPECTED, found, True)


def check_compatibility(plan: dict[str, Any], checks: list[Check], *, computed_right: bool) -> list[Check]:
    """The checks, in which the check of the driver fails or has a warning if the runtime is incompatible.

    Rules of compatibility come from the release notes; correct numbers are better evidence.

    Args:
        plan: The plan's expectations of the node.
        checks: All checks of the node.
        computed_right: Whether the self-test and the collectives passed. Otherwise an incompatible runtime fails the
            check.
    """
    problem = incompatibility(plan)
    if not problem:
        return checks
    return [
        (failed.warned() if computed_right else failed)
        if check.name == "driver" and check.settled and (failed := check._replace(ok=False, problem=problem))
        else check
        for check in checks
    ]


def incompatibility(plan: dict[str, Any]) -> str:
    """Why the loaded driver and the runtime are incompatible; empty if no rule says so."""
    loaded, runtime = files.read("sys/module/neuron/version").strip(), runtime_version()
    for rule in plan.get("driver_rules", []):
        if loaded and runtime and is_within(rule, "driver", loaded) and is_within(rule, "runtime", runtime):
            sentence = f"driver {loaded} and runtime {runtime} are incompatible: {rule['why']}"
            return f"{sentence}; install both from one Neuron release"
    return ""


def failed_check(found: str, problem: str, *, may_heal: bool = False) -> Check:
    return Check("driver", EXPECTED, found, False, problem, may_heal)


def runtime_version() -> str:
    """The version of the package, or of the library's file; empty if neither is installed."""
    for query in (("dpkg-query", "-W", "-f", "${Version}"), ("rpm", "-q", "--qf", "%{VERSION}")):
        package = run(*query, RUNTIME, seconds=SECONDS)
        if not package.error and version(package.out):
            return package.out.split("-")[0].strip()
    names = [file.name for file in files.path("opt/aws/neuron/lib").glob("libnrt.so.*.*")]
    return max((name[len("libnrt.so.") :] for name in names), key=version, default="")


def version(text: str) -> tuple[int, ...]:
    """The numbers at the start of a version; empty if there are none."""
    match = re.match(r"\d{1,9}(\.\d{1,9})*", text.strip())
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def is_within(rule: dict[str, str], name: str, text: str) -> bool:
    """Whether a version of the driver or runtime (`name`) is at least the rule's NAME_from and below its NAME_below."""
    low, high = rule.get(f"{name}_from"), rule.get(f"{name}_below")
    return (low is None or version(text) >= version(low)) and (high is None or version(text) < version(high))
