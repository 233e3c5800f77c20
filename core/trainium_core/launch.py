"""How training is started on the cluster a plan describes."""

from trainium_core.facts import facts
from trainium_core.plan import Plan


def torchrun_command(plan: Plan, script: str = "train.py") -> str:
    """The torchrun line that every node runs: one process for each logical NeuronCore.

    With several nodes `$HEAD_NODE` stands for the private IPv4 address of any one of them, the same on all.
    """
    if plan.nodes == 1:
        return f"torchrun --nproc_per_node={plan.neuron_cores_per_node} {script}"
    return (
        f"torchrun --nnodes={plan.nodes} --nproc_per_node={plan.neuron_cores_per_node} "
        f"--rdzv_id={plan.cluster_name} --rdzv_backend=c10d "
        f"--rdzv_endpoint=$HEAD_NODE:{facts()['rendezvous']['port']} {script}"
    )
