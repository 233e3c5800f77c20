"""CPU time of `import trainium_cdk`, relative to the modules of the CDK that it imports."""

import os
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from tools.demo.private_aws import PrivateAws

_PAIRS = 9
_MODULES = """
import sys
import trainium_cdk
cdk = (name for name in sys.modules if name.split(".")[0] in ("aws_cdk", "constructs"))
print(*(name for name in cdk if name.count(".") <= 1 and not name.endswith("_jsii")), sep=", ")
"""


def import_speed(aws: PrivateAws) -> Iterator[tuple[str, str]]:  # noqa: ARG001
    """Import both alternately, so that other load affects both."""
    cdk = subprocess.run([sys.executable, "-c", _MODULES], capture_output=True, text=True, check=True).stdout
    pairs = [(_cpu_seconds("import trainium_cdk"), _cpu_seconds(f"import {cdk}")) for _ in range(_PAIRS + 1)][1:]
    ours, least = (median(seconds) for seconds in zip(*pairs, strict=True))
    ratio = median(one / other for one, other in pairs)
    found = f"{ours:.2f} s, {least:.2f} s of CPU time, {ratio:.2f} times, medians of {_PAIRS}"
    yield "import trainium_cdk, of the CDK's modules in it", found


def _cpu_seconds(code: str) -> float:
    # With compiled modules, as after an installation.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
