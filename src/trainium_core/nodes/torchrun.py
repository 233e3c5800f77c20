"""How training is started on the cluster a plan describes."""

from trainium_core.facts import facts
from trainium_core.plan import Plan


def torchrun_command(plan: Plan, script: str = "train.py") -> str:
    """The torchrun line that every node of the plan runs."""
    return torchrun_line(plan.nodes, plan.neuron_cores_per_node, script)


def torchrun_line(nodes: int, neuron_cores: int, script: str = "train.py") -> str:
    """The torchrun line that every node runs: one process for each logical NeuronCore.

    neuron_cores: of each node.

    A login shell puts the framework's programs on PATH and sets the node's rank and the address of the first node, by
    the membership; the line starts one, so that it runs as it is in a shell, a session and a service. Ranks are static:
    the c10d rendezvous would rank nodes by host name, and rank 0 has to be at the address that all nodes are given.
    """
    return (
        f"bash -lc 'torchrun --nnodes={nodes} --nproc_per_node={neuron_cores} "
        f"--node_rank=$TRN_NODE_RANK --master_addr=$HEAD_NODE "
        f"--master_port={facts()['rendezvous']['port']} {script}'"
    )
