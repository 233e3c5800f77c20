"""The variables of the Neuron runtime in a job with `profile`. No profile is written here: that needs a device."""

import json
from typing import Any

import pytest

from tests.userdata.job_nodes import JobNodes

SCRIPT = """
import json, os
names = [name for name in os.environ if name.startswith("NEURON_RT_INSPECT_")]
print("found", json.dumps({name: os.environ[name] for name in names}))
"""


def inspected(nodes: JobNodes, rank: int = 0) -> dict[str, Any]:
    (line,) = [line for line in nodes.log(rank).splitlines() if "found {" in line]
    return json.loads(line.partition("found ")[2])


@pytest.mark.parametrize(("rank", "is_profiled"), [("0", False), ("3", True), ("30", False)])
def test_only_named_ranks_of_torchrun_are_profiled(nodes: JobNodes, rank: str, is_profiled: bool) -> None:
    nodes.start(SCRIPT, profile=[3, 5], environment={"RANK": rank})
    assert nodes.wait() == [0]
    folder = str(nodes.place(0) / "outputs/profile")
    expected = {
        "NEURON_RT_INSPECT_ENABLE": "1",
        "NEURON_RT_INSPECT_SYSTEM_PROFILE": "1",
        "NEURON_RT_INSPECT_DEVICE_PROFILE": "0",
        "NEURON_RT_INSPECT_OUTPUT_DIR": folder,
    }
    assert inspected(nodes) == (expected if is_profiled else {})


def test_command_is_profiled_on_named_nodes(nodes: JobNodes) -> None:
    nodes.start(SCRIPT, nodes=2, has_ranks=False, profile=[1], profile_device=True)
    assert nodes.wait() == [0, 0]
    assert inspected(nodes, 0) == {}
    assert inspected(nodes, 1)["NEURON_RT_INSPECT_DEVICE_PROFILE"] == "session"


def test_profiled_job_can_be_observed_as_well(nodes: JobNodes) -> None:
    nodes.start(SCRIPT, profile=[0], observe=True, environment={"RANK": "0"})
    assert nodes.wait() == [0]
    assert inspected(nodes)["NEURON_RT_INSPECT_ENABLE"] == "1"
    assert nodes.record()["observed"]["processes"] == 0
