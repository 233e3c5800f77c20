"""An all-reduce with nccom-test, which compares the result with the CPU's.

Source: AWS Neuron SDK documentation, nccom-test.rst.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .check import Check
from .job_user import make_job_user_folder, verification_user
from .programs import ProgramRun, run

SECONDS = 300
"""Time limit of one run, because a hang never ends."""
BYTES = 1048576
LARGE_BYTES = 256 * BYTES
"""From about this size on, the bandwidth of a link dominates, not the latency."""
COUNTS = ("-d", "fp32", "-n", "5", "-w", "1")
OPTIONS = ("-b", str(BYTES), "-e", str(BYTES), *COUNTS, "-c", "--non-interactive")
"""Another option has to follow -c: before release 2.28 it takes no value, and since then an optional one."""
WRONG = re.compile(r".*\b(?:mismatch|incorrect|corrupt|[1-9][0-9]* errors found).*", re.IGNORECASE)
"""Words that may mean a wrong result. nccom-test.rst does not document the output for a result that fails the check.
The only failed run in it, whose benchmark did not run, ends with `1 errors found - test failed`. This counts as a wrong
result, because it may be one. If nccom-test exits with 0, the words are only a warning."""


def check_collectives(plan: dict[str, Any], cores: int) -> Check:
    expected = f"a correct all-reduce over {cores} cores"
    if cores < 2:
        return Check("collectives", expected, "one core has no other core to reduce with", True)
    ran, bandwidth = _all_reduce(plan, cores, OPTIONS, BYTES)
    if bandwidth is None and not WRONG.search(ran.out + ran.error):
        # A timeout or crash is retried once, as in the self-test. What may be a wrong number is not retried.
        ran, bandwidth = _all_reduce(plan, cores, OPTIONS, BYTES)
    odd = WRONG.search(ran.out)
    if not ran.error and bandwidth is not None:
        warning = f"nccom-test exits with 0 and prints: {odd[0].strip()[:200]}" if odd else ""
        found = f"correct, {bandwidth:.1f} GB/s"
        # Without -c, which would make the CPU compute this amount for each core.
        size = ("-b", str(LARGE_BYTES), "-e", str(LARGE_BYTES))
        ran, large = _all_reduce(plan, cores, (*size, *COUNTS, "--non-interactive"), LARGE_BYTES)
        if large is None:
            why = ran.error or "nccom-test reports no result"
            warning = "; ".join(filter(None, (warning, f"the bandwidth at 256 MiB is unknown: {why}")))
        else:
            found += f"; {large:.1f} GB/s at 256 MiB"
        return Check("collectives", expected, found, True, warning=warning, bandwidth=large)
    found = ran.error or "nccom-test reports no result"
    wrong = bool(WRONG.search(ran.error) or odd)
    problem = f"all-reduce over {cores} cores: {found}"
    return Check("collectives", expected, found, False, problem, wrong_numbers=wrong)


def _all_reduce(plan: dict[str, Any], cores: int, options: Sequence[str], size: int) -> tuple[ProgramRun, float | None]:
    """The outcome of nccom-test, and its bus bandwidth for this size."""
    with tempfile.TemporaryDirectory() as folder:
        make_job_user_folder(Path(folder))
        report = Path(folder) / "report.json"
        lnc = plan["logical_neuroncore_config"]
        changes = {"NEURON_LOGICAL_NC_CONFIG": str(lnc)} if lnc else {}
        command = ("nccom-test", "-r", str(cores), *options, "--report-to-json-file", str(report), "allr")
        ran = run(*command, seconds=SECONDS, changes=changes, folder=folder, user=verification_user(plan))
        text = report.read_text(errors="replace") if report.is_file() else ""
    return ran, None if ran.error else bus_bandwidth(text, size)


def bus_bandwidth(text: str, size: int = BYTES) -> float | None:
    """The bus bandwidth of the report's only result, in GB/s; None without a result of at least this size in
    bytes and a nonzero time.

    nccom-test.rst calls the unit gibibytes per second, as in the printed table; the report in it has 10^9 bytes.
    """
    try:
        (result,) = json.loads(text)["results"]
        timed = float(result["time:avg(us)"]) > 0 and int(result["size(B)"]) >= size
        return float(result["busbw(GB/s)"]) if timed else None
    except (ValueError, LookupError, TypeError, RecursionError, OverflowError):
        return None
