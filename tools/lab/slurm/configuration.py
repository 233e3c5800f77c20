"""The configuration files of Slurm, rendered from the settings of a plan as AWS PCS renders them.

docs/project/node-lab.md lists the differences from AWS PCS.
"""

from collections.abc import Mapping

from tools.lab.instance import Instance
from trainium_core.engines.pcs.slurm_settings import (
    CLUSTER_SETTINGS,
    NODE_GROUP,
    cpus,
    gres_records,
    group_settings,
    queue_settings,
    queues,
)
from trainium_core.plan import Plan

CONTROLLER_PORT = 6817
POWER_FOLDER = "/var/lib/trnlab"
RESUME_PROGRAM, SUSPEND_PROGRAM = (f"/usr/lib/trnlab/{name}" for name in ("resume", "suspend"))

LIKE_PCS = {
    "AuthType": "auth/slurm",
    "CredType": "auth/slurm",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU",
    "SlurmctldParameters": "enable_configless,idle_on_node_suspend,enable_expedited_requeue",
    "SchedulerParameters": "requeue_delay=5,requeue_on_resume_failure",
    "ReturnToService": "2",
    "TreeWidth": "65533",
}
"""Settings that AWS PCS is known or expected to set."""

ONLY_HERE = {
    # Nodes are containers that share this machine's CPUs and memory.
    "SlurmdParameters": "config_overrides",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/none",
    "PrologFlags": "Alloc",
    # Shorter than in a real cluster, so that tests need not wait as long.
    "SlurmdTimeout": "15",
    "MessageTimeout": "10",
    "ResumeTimeout": "180",
    "SuspendTimeout": "10",
    # Without accounting, only slurmctld's memory has the exit codes of jobs.
    "MinJobAge": "3600",
}
"""Settings that differ from AWS PCS."""

_MEMORY_SHARE = 0.95


def configuration_files(plan: Plan, controller: Instance, *, idle_seconds: int) -> Mapping[str, str]:
    """The files of /etc/slurm on the controller, by name.

    Args:
        idle_seconds: Seconds after which an idle node is powered down.
    """
    resources = gres_records(plan)
    return {
        "slurm.conf": _slurm_conf(plan, controller, idle_seconds=idle_seconds),
        "gres.conf": "".join(f"NodeName={_nodes(plan)} {_entry(record)}\n" for record in resources),
        "cgroup.conf": "CgroupPlugin=disabled\n",
    }


def _slurm_conf(plan: Plan, controller: Instance, *, idle_seconds: int) -> str:
    settings = {
        "ClusterName": plan.cluster_name,
        "SlurmctldHost": f"{controller.host_name}({controller.address})",
        "SlurmctldPort": str(CONTROLLER_PORT),
        "SlurmUser": "slurm",
        "StateSaveLocation": "/var/lib/slurm/slurmctld",
        "SlurmdSpoolDir": "/var/lib/slurm/slurmd",
        "GresTypes": ",".join(dict.fromkeys(record["Name"] for record in gres_records(plan))),
        "ResumeProgram": RESUME_PROGRAM,
        "SuspendProgram": SUSPEND_PROGRAM,
        "SuspendTime": str(idle_seconds),
        **LIKE_PCS,
        **ONLY_HERE,
        **CLUSTER_SETTINGS,
    }
    memory = int(plan.type.memory_gib * 1024 * _MEMORY_SHARE)
    node = {
        "NodeName": _nodes(plan),
        "CPUs": str(cpus(plan)),
        "RealMemory": str(memory),
        **group_settings(plan),
        "State": "CLOUD",
    }
    lines = [f"{name}={value}" for name, value in settings.items()]
    lines.append(_entry(node))
    for queue in queues(plan):
        partition = {"PartitionName": queue.name, "Nodes": _nodes(plan), "MaxTime": "INFINITE", "State": "UP"}
        lines.append(_entry({**partition, **queue_settings(plan, queue)}))
    return "\n".join(lines) + "\n"


def _nodes(plan: Plan) -> str:
    return f"{NODE_GROUP}-[1-{plan.nodes}]"


def _entry(values: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
