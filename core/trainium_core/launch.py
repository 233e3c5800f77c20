"""How training is started on the cluster a plan describes."""

from trainium_core.facts import facts
from trainium_core.plan import Plan


def torchrun_command(plan: Plan, script: str = "train.py") -> str:
    """The torchrun line that every node runs: one process for each logical NeuronCore.

    `$HEAD_NODE` is in the environment of every login shell on the nodes: the address of the first one, by the roster.
    """
    return (
        f"torchrun --nnodes={plan.nodes} --nproc_per_node={plan.neuron_cores_per_node} "
        f"--rdzv_id={plan.cluster_name} --rdzv_backend=c10d "
        f"--rdzv_endpoint=$HEAD_NODE:{facts()['rendezvous']['port']} {script}"
    )
