"""A job on a booted node with polkit and logind: nothing of it runs outside of its unit, or beside the next attempt."""

from collections.abc import Iterator

import pytest

from tools.lab.cluster_jobs import UNIT
from tools.lab.hardware import LOCAL_DISK_BYTES
from tools.lab.laboratory import Laboratory
from tools.lab.node import Node
from tools.lab.plans import lab_plan
from tools.lab.site import Site
from tools.lab.waiting import wait_for

START = """
import sys
from trn_node import job_unit
from trn_node.programs import run
script = ("sh", "-c", sys.argv[2])
job_unit.run = lambda *command, seconds: run(*command[: command.index("python3")], *script, seconds=seconds)
job_unit.JobUnit().start("job", int(sys.argv[1]), {})
"""
"""Starts the unit of an attempt with a script in place of the job's program."""

LEAVES = """
loginctl enable-linger trn-job && echo lingers
busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager ListUsers && echo bus
export XDG_RUNTIME_DIR=/run/user/60800
for n in 1 2 3 4 5 6; do systemd-run --user --unit=escaped sleep 1000 && echo escaped && break; sleep 0.5; done
setsid sleep 1000 &
touch "$HOME/results-lost"
"""

WRITABLE = r"""
find / \( -path /proc -o -path /sys -o -name trn-jobs \) -prune -o -type d -writable -print 2>/dev/null |
  while read -r folder; do : >"$folder/left-here" && echo "wrote $folder"; done
mkdir -p /dev/shm/a/b && : >/dev/shm/a/b/left-here && : >/dev/shm/.left-here && chmod 0 /dev/shm/a
ipcmk --shmem 100 --semaphore 1 --queue
for folder in /home /run/dbus /run/lock /tmp /var/cache/trn/self-test; do
  unshare --user --map-root-user --mount umount "$folder" && echo "unmounted $folder"
done
true
"""
"""Writes a file into every folder that a job may write, and tries to see the hidden folders."""


@pytest.fixture(scope="module")
def node(lab: Laboratory) -> Iterator[Node]:
    site = Site(lab, lab_plan())
    node = site.node()
    node.power_on()
    assert site.outcome(node).verdict.state == "ready"
    yield node
    lab.remove(node)


def run_attempt(node: Node, number: int, script: str) -> None:
    node.execute("env", "PYTHONPATH=/opt/trn", "python3", "-c", START, str(number), f"({script}) >$HOME/log 2>&1")
    # ExecStopPost runs while the unit is deactivating, which is-active does not call active.
    state = ("systemctl", "show", "--property=ActiveState", "--value", UNIT)
    wait_for("the end of the unit", lambda: node.execute(*state).strip() in ("inactive", "failed"))


def processes(node: Node) -> list[str]:
    """The processes of the user of jobs."""
    return node.execute("sh", "-c", "pgrep -u trn-job --list-full || true").splitlines()


def await_end_of_processes(node: Node) -> None:
    """The killed ones remain until systemd has read their exit codes. None ends by itself before the time limit."""
    wait_for("the end of all processes", lambda: not processes(node))


def test_job_cannot_start_processes_outside_of_its_unit(node: Node) -> None:
    run_attempt(node, 1, LEAVES)
    log = node.execute("cat", "/opt/dlami/nvme/trn-jobs/job-1/log")
    assert not {"lingers", "bus", "escaped"} & set(log.splitlines()), log
    assert "Permission denied" in log
    await_end_of_processes(node)


def test_user_of_jobs_has_no_user_manager_even_with_the_bus(node: Node) -> None:
    node.succeeds("runuser", "-u", "trn-job", "--", "loginctl", "enable-linger", "trn-job")
    assert not node.succeeds("systemctl", "start", "user@60800.service")
    assert processes(node) == []


def test_processes_beside_an_attempt_are_ended_before_it(node: Node) -> None:
    stray = "for n in 1 2 3; do runuser -u trn-job -- setsid sleep 1000 >/dev/null 2>&1 & done"
    node.execute("sh", "-c", stray)
    wait_for("the processes", lambda: len([line for line in processes(node) if " sleep" in line]) == 3)
    run_attempt(node, 2, "pgrep -u trn-job sleep")
    await_end_of_processes(node)


def test_job_leaves_files_only_on_the_local_disks(node: Node) -> None:
    # Ubuntu's image has it.
    node.execute("mkdir", "--mode=1777", "/var/crash")
    node.execute("test", "-d", "/run/cloud-init/tmp")
    run_attempt(node, 9, WRITABLE)
    log = node.execute("cat", "/opt/dlami/nvme/trn-jobs/job-9/log")
    wrote = {line.removeprefix("wrote ") for line in log.splitlines() if line.startswith("wrote ")}
    assert wrote == {"/dev/mqueue", "/dev/shm", "/opt/dlami/nvme", "/run/lock", "/scratch", "/tmp", "/var/tmp"}, log
    assert "unmounted" not in log
    left = node.execute("sh", "-c", "find / -path /proc -prune -o -name '*left-here' -print")
    assert sorted(left.split()) == ["/opt/dlami/nvme/left-here", "/scratch/left-here"]
    assert "trn-job" not in node.execute("ipcs")
    run_attempt(node, 10, "find / -path /proc -prune -o -name '*left-here' -print")
    log = node.execute("cat", "/opt/dlami/nvme/trn-jobs/job-10/log")
    assert {line for line in log.splitlines() if line.startswith("/")} == {*left.split()}
    node.execute("rm", "/scratch/left-here")


def test_job_cannot_write_more_than_the_limit_of_the_local_disks(node: Node) -> None:
    fill = "error=$(head -c 2G /dev/zero 2>&1 >$HOME/full); size=$(stat -c %s $HOME/full); rm $HOME/full"
    run_attempt(node, 11, f"{fill}; echo $error; echo $size")
    log = node.execute("cat", "/opt/dlami/nvme/trn-jobs/job-11/log")
    assert "No space left on device" in log
    assert int(log.split()[-1]) <= LOCAL_DISK_BYTES


def test_only_lost_results_outlive_an_attempt(node: Node) -> None:
    run_attempt(node, 3, 'echo mine >"$HOME/output"; exit 5')
    assert node.execute("stat", "--format=%U %a", "/opt/dlami/nvme/trn-jobs/job-3").split() == ["root", "750"]
    run_attempt(node, 4, "ls -R /opt/dlami/nvme/trn-jobs; touch $HOME/results-lost")
    run_attempt(node, 5, "cd /opt/dlami/nvme/trn-jobs; cat job-3/output job-4/log; touch job-3/new; rm -r job-3")
    folders = node.execute("ls", "/opt/dlami/nvme/trn-jobs").split()
    assert folders == ["job-3", "job-5"]
    log = node.execute("cat", "/opt/dlami/nvme/trn-jobs/job-5/log")
    assert log.startswith("mine\ncat: job-4/log: No such file or directory\n"), log
    assert "touch: cannot touch 'job-3/new': Permission denied" in log
    # The parent is the program of the attempt.
    run_attempt(node, 6, 'read -r pid name state parent rest </proc/self/stat; kill -s KILL "$parent"')
    run_attempt(node, 7, "exit 1")
    run_attempt(node, 8, "true")
    assert node.execute("ls", "/opt/dlami/nvme/trn-jobs").split() == ["job-3", "job-6", "job-8"]
