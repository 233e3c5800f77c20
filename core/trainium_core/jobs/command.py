"""What each node runs: torchrun with one process for each logical NeuronCore, or a command of the user's own."""

import shlex

from trainium_core.facts import facts
from trainium_core.jobs.request import JobRequest
from trainium_core.plan import Plan


def node_command(plan: Plan, request: JobRequest, script: str | None) -> str:
    """One bash line, the same on every node: each sets TRN_NODES, TRN_NODE_RANK and HEAD_NODE before it.

    script: path of the script in the packed source; None for a request with a command of its own.

    Ranks are static, by the roster (see trainium_core.nodes.torchrun). A dead rank ends the attempt on all nodes, so
    torchrun itself starts nothing again. `--tee` makes it print each line with the rank that wrote it.
    """
    if request.command is not None:
        return request.command
    assert script is not None
    options = {
        "nnodes": "$TRN_NODES",
        "nproc_per_node": str(plan.neuron_cores_per_node),
        "node_rank": "$TRN_NODE_RANK",
        "master_addr": "$HEAD_NODE",
        "master_port": str(facts()["rendezvous"]["port"]),
        "max_restarts": "0",
        "tee": "3",
    }
    given = " ".join(f"--{name}={value}" for name, value in options.items())
    return f"torchrun {given} {shlex.join([script, *request.arguments])}"
