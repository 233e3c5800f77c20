"""The lifecycle scripts of AWS PCS and the programs that they install, run as by its agent on a node in a folder."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.booting_node import BootingNode, Run
from tests.userdata.plans import plan_for
from tests.userdata.verified_node import RECORD_KEY, VerifiedNode
from tests.userdata.watch_node import WatchNode
from trainium_core.engines.pcs.slurm_settings import EPILOG
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.node.trn_node import files
from trainium_userdata.script import TEMPLATES, slurm_script

PLAN = plan_for("trn1.32xlarge", nodes=2)
LARGEST = 2 * 2**20
"""Bytes of a script of a lifecycle action (AWS PCS User Guide, node lifecycle actions)."""
STAND_IN = "stand-in"
SlurmRole = Literal["slurm", "login"]
ROLES: tuple[SlurmRole, ...] = ("slurm", "login")


class PcsNode(BootingNode):
    """A node that the agent of AWS PCS boots. Stand-ins replace trn-node and trn-slurm once they are installed."""

    def __init__(self, folder: Path, plan: Plan, aws: AwsStandIn) -> None:
        super().__init__(folder, plan, aws)
        for name in ("cmp", "timeout", "seq"):
            (self.programs / name).unlink(missing_ok=True)
            (self.programs / name).symlink_to(str(shutil.which(name)))
        timeout = shutil.which("timeout")
        self.program(
            "timeout",
            f'[[ $* != *boot.sh ]] || cp "$ROOT/{STAND_IN}" "$ROOT/usr/local/bin/trn-node"\n'
            f'[[ $* != *boot.sh ]] || cp "$ROOT/{STAND_IN}" "$ROOT/usr/local/bin/trn-slurm"\nexec {timeout} "$@"',
        )
        self.replace_programs("true")

    def replace_programs(self, body: str) -> None:
        """Put stand-ins for trn-node and trn-slurm with this body on the node, once these are installed."""
        call = 'echo "${0##*/} $*" >>"$ROOT/calls"; [[ ! $1 =~ ^(framework|cache-url)$ ]] || exit 0'
        self.write(STAND_IN, f"#!/bin/bash\n{call}\n{body}\n")
        (self.root / STAND_IN).chmod(0o755)

    def run_action(self, script: str) -> Run:
        self.write("action.sh", script)
        return self._run("action.sh")

    def verify(self) -> Run:
        return self.run_action(slurm_script(node_settings(self.plan), "slurm"))

    @property
    def files(self) -> Mapping[str, str]:
        ignored = ("calls", "trn-node.log", "motd.d")
        found = (file for file in self.root.rglob("*") if file.is_file() and not {*file.parts} & {*ignored})
        return {str(file): file.read_text() for file in found}


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn) -> PcsNode:
    return PcsNode(tmp_path, PLAN, aws)


def our_calls(run: Run) -> list[str]:
    calls = [call for call in run.calls if call.startswith(("trn-", "systemctl start"))]
    return [call for call in calls if not call.endswith(("framework", "cache-url"))]


@pytest.mark.parametrize("setup", [None, "#!/bin/bash\n" + "echo long\n" * 5_000])
@pytest.mark.parametrize("role", ROLES)
def test_script_is_below_half_of_the_size_that_pcs_allows(role: SlurmRole, setup: str | None) -> None:
    text = slurm_script(node_settings(plan_for("trn2.48xlarge", setup_script=setup, fsx_lustre=1200, efs="new")), role)
    assert len(text.encode()) < LARGEST / 2


@pytest.mark.parametrize("role", ROLES)
def test_script_does_not_depend_on_the_number_of_nodes(role: SlurmRole) -> None:
    texts = {slurm_script(node_settings(plan_for("trn1.32xlarge", nodes=nodes)), role) for nodes in (1, 4)}
    assert len(texts) == 1


def test_node_finds_the_programs_of_its_version_of_slurm(node: PcsNode) -> None:
    run = node.run_action(slurm_script(node_settings(PLAN), "slurm", slurm_version="25.11"))
    assert run.exit_code == 0, run.output
    assert "scheduler/slurm-25.11/bin" in node.read("etc/profile.d/trn-slurm.sh")


def test_healthy_node_exits_with_0_after_its_proof(node: PcsNode) -> None:
    run = node.verify()
    assert run.exit_code == 0, run.output
    assert our_calls(run) == [
        "trn-node verify",
        "systemctl start --no-block trn-node-watch.service",
        "trn-slurm remember",
    ]
    assert {"systemd-sysusers trn-job.conf", "systemctl mask --quiet --no-reload user@60800.service"} <= set(run.calls)
    assert os.access(node.root / EPILOG.lstrip("/"), os.X_OK)
    assert "unlimited" in node.read("etc/security/limits.d/99-trn.conf")
    assert "FI_PROVIDER=efa" in node.read("etc/trn/environment")
    assert not (node.root / "etc/systemd/system/trn-node.service").exists()


def test_second_boot_leaves_the_same_files(node: PcsNode) -> None:
    assert node.verify().exit_code == 0
    before = node.files
    assert node.verify().exit_code == 0
    assert node.files == before


def test_unverified_node_fails_the_action_and_reports_once(node: PcsNode) -> None:
    node.replace_programs("exit 1")
    run = node.verify()
    assert (run.exit_code, our_calls(run)) == (1, ["trn-node verify"])


def test_setup_script_that_fails_is_reported(tmp_path: Path, aws: AwsStandIn) -> None:
    node = PcsNode(tmp_path, plan_for("trn1.32xlarge", setup_script="echo no licence; exit 5"), aws)
    run = node.verify()
    assert run.exit_code == 1
    assert our_calls(run)[-1] == "trn-node report failed the setup script failed with exit code 5: no licence"


def test_proof_that_does_not_end_is_ended_and_reported(node: PcsNode) -> None:
    node.replace_programs("[[ $1 != verify ]] || exec sleep 100")
    script = slurm_script(node_settings(PLAN), "slurm")
    seconds = facts()["pcs"]["proof_seconds"]
    assert seconds <= 20 * 60
    run = node.run_action(script.replace(f"--kill-after=30 {seconds}", "--kill-after=1 3"))
    assert run.exit_code == 1
    reason = "the node was not set up within 20 minutes; its last step: verify the node"
    assert our_calls(run) == ["trn-node verify", f"trn-node report failed {reason}"]


def test_computations_on_all_cores_end_before_the_proof_does(node: PcsNode) -> None:
    assert node.verify().exit_code == 0
    plan = json.loads(node.read("etc/trn/plan.json"))
    assert plan["self_test"]["all_seconds"] < facts()["pcs"]["proof_seconds"]


def test_incomplete_installation_is_reported(node: PcsNode) -> None:
    node.program("systemd-sysusers", "exit 1")
    run = node.verify()
    assert run.exit_code == 1
    assert "systemd-sysusers trn-job.conf failed" in node.aws.records[RECORD_KEY]


@pytest.mark.parametrize(("baked", "is_kept"), [("i-0another", False), (INSTANCE_ID, True)])
def test_record_of_a_baked_image_is_removed(node: PcsNode, baked: str, is_kept: bool) -> None:
    node.write("var/lib/trn/instance-id", f"{baked}\n")
    node.write("var/lib/trn/record.json", "{}")
    assert node.verify().exit_code == 0
    assert (node.root / "var/lib/trn/record.json").exists() == is_kept


def test_login_node_is_set_up_without_proof_and_record(node: PcsNode) -> None:
    run = node.run_action(slurm_script(node_settings(PLAN), "login"))
    assert (run.exit_code, our_calls(run)) == (0, []), run.output
    assert "AWS_REGION=us-west-2" in node.read("etc/trn/environment")
    assert "login node" in node.read("etc/motd.d/trn")
    assert "Most deployments replace this node" in node.read("etc/motd.d/trn")


def test_login_node_that_fails_writes_no_record(node: PcsNode) -> None:
    (node.root / "etc/trn/places.env").unlink()
    run = node.run_action(slurm_script(node_settings(PLAN), "login"))
    assert (run.exit_code, our_calls(run)) == (1, [])
    assert "places.env" in node.read("dev/console")


SCONTROL = """echo asked >>"$ASKED"
case "$*" in
"show hostnames nodes-[1-2]") printf 'nodes-1\\nnodes-2\\n' ;;
"--oneliner show node nodes-1") echo "NodeName=nodes-1 Arch=x86_64 NodeAddr=$ADDRESS NodeHostName=ip-10-0-0-7" ;;
*) exit 1 ;;
esac"""


@pytest.mark.parametrize("shell", ["bash", "sh"])
@pytest.mark.parametrize("address", ["10.0.0.7", "nodes-1"])
@pytest.mark.parametrize(("more", "asked"), [({}, 2), ({"TRN_HEAD_OF": "7 nodes-[1-2]", "HEAD_NODE": "10.0.0.7"}, 0)])
def test_profile_gives_a_task_rank_and_head_address(
    tmp_path: Path, shell: str, address: str, more: dict[str, str], asked: int
) -> None:
    programs, count = tmp_path / "bin", tmp_path / "asked"
    programs.mkdir()
    (programs / "scontrol").write_text(f"#!/bin/bash\n{SCONTROL}\n")
    answer = '[[ $* == *--nodelist=nodes-1*"trn-slurm address" ]] && echo "0 i-1 10.0.0.7"'
    (programs / "srun").write_text(f"#!/bin/bash\n{answer}\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    profile = tmp_path / "profile.sh"
    profile.write_text(TEMPLATES.get_template("slurm_profile.sh.j2").render(slurm_version="26.05"))
    of_slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "nodes-[1-2]", "SLURM_JOB_NUM_NODES": "2"}
    environment = {
        "PATH": f"{programs}:{os.defpath}",
        "ASKED": str(count),
        "ADDRESS": address,
        "SLURM_NODEID": "1",
        **of_slurm,
        **more,
    }
    shown = subprocess.run(
        [shell, "-euc", f'. {profile}; echo "$TRN_NODES $TRN_NODE_RANK $HEAD_NODE"'],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.split() == ["2", "1", "10.0.0.7"]
    assert (len(count.read_text().splitlines()) if count.exists() else 0) == asked


def test_record_has_the_name_of_the_node_in_slurm(tmp_path: Path, aws: AwsStandIn) -> None:
    outcome = VerifiedNode(tmp_path, PLAN, aws).run("verify", PCS_NODE_ID="nodes-3")
    assert outcome.record
    assert outcome.record.slurm_node == "nodes-3"


class NodeAfterJob(VerifiedNode):
    """A verified node on which a job has ended."""

    def __init__(self, folder: Path, aws: AwsStandIn) -> None:
        super().__init__(folder, PLAN, aws)
        self.program("scontrol", f'printf "%s\\n" "$@" >{self.root}/scontrol')
        assert self.run("remember", program="trn_slurm").exit_code == 0

    def epilog(self, **environment: str) -> int:
        return self.run("epilog", program="trn_slurm", SLURMD_NODENAME="nodes-1", **environment).exit_code

    @property
    def drained(self) -> list[str]:
        file = self.root / "scontrol"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def after_job(tmp_path: Path, aws: AwsStandIn) -> NodeAfterJob:
    return NodeAfterJob(tmp_path, aws)


def test_epilog_leaves_a_healthy_node_alone(after_job: NodeAfterJob) -> None:
    assert (after_job.epilog(), after_job.drained) == (0, [])


@pytest.mark.parametrize(("uid", "ended"), [("60800", True), ("1000", False)])
def test_epilog_ends_what_jobs_of_trn_left_running(after_job: NodeAfterJob, uid: str, ended: bool) -> None:
    after_job.write("proc/4711/status", "State:\tS\nUid:\t60800\t60800\t60800\t60800\nThreads:\t1\n")
    after_job.program("runuser", f"/bin/rm -r {after_job.root}/proc/4711")
    assert (after_job.epilog(SLURM_JOB_UID=uid), after_job.drained) == (0, [])
    assert (after_job.root / "proc/4711").exists() != ended


def test_epilog_drains_a_node_with_new_memory_errors(after_job: NodeAfterJob) -> None:
    after_job.counter(3, "stats/hardware/mem_ecc_uncorrected", 2)
    assert after_job.epilog() == 0
    assert after_job.drained[:3] == ["update", "NodeName=nodes-1", "State=DRAIN"]
    assert "Neuron device 3: 2 uncorrectable memory errors" in after_job.drained[3]


def test_epilog_drains_a_node_that_lost_a_device(after_job: NodeAfterJob) -> None:
    devices = json.loads(after_job.read("neuron-ls.json"))
    after_job.neuron_ls(devices[1:])
    assert after_job.epilog() == 0
    assert after_job.drained[3].startswith("Reason=trn: 15 of 16 Neuron devices (missing: device 0)")


def test_epilog_drains_a_node_that_the_watch_found_failed(after_job: NodeAfterJob) -> None:
    record: dict[str, Any] = {
        "instance_id": INSTANCE_ID,
        "state": "failed",
        "reason": "DMA_ERROR in the kernel log",
        "checks": [],
    }
    after_job.write("var/lib/trn/record.json", json.dumps(record))
    assert after_job.epilog() == 0
    assert after_job.drained[3] == "Reason=trn: DMA_ERROR in the kernel log"


@pytest.mark.parametrize(
    ("at", "is_drained"), [("", True), ("2020-01-01T00:00:00Z", True), ("2100-01-01T00:00:00Z", False)]
)
def test_epilog_drains_a_node_that_ends_soon(after_job: NodeAfterJob, at: str, is_drained: bool) -> None:
    notice = {"kind": "spot", "reason": "EC2 reclaims this Spot Instance: terminate", "at": at}
    after_job.write("run/trn/notice.json", json.dumps(notice))
    assert after_job.epilog() == 0
    drained = ["Reason=trn: EC2 reclaims this Spot Instance: terminate"] if is_drained else []
    assert after_job.drained[3:] == drained


def test_drain_without_a_job_uses_the_name_in_the_record(after_job: NodeAfterJob) -> None:
    assert (after_job.run("drain", program="trn_slurm").exit_code, after_job.drained) == (0, [])
    record = {"instance_id": INSTANCE_ID, "state": "failed", "reason": "DMA_ERROR", "checks": [], "slurm_node": "n-2"}
    after_job.write("var/lib/trn/record.json", json.dumps(record))
    assert after_job.run("drain", program="trn_slurm").exit_code == 0
    assert after_job.drained == ["update", "NodeName=n-2", "State=DRAIN", "Reason=trn: DMA_ERROR"]


@pytest.mark.parametrize("uses_slurm", [True, False])
def test_watch_drains_a_failed_node_of_slurm_until_it_succeeds(
    tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch, uses_slurm: bool
) -> None:
    watched = WatchNode(tmp_path, aws, monkeypatch)
    watched.plan(slurm=uses_slurm)
    watched.program("trn-slurm", f'echo "$*" >>{tmp_path}/calls; test -e {tmp_path}/works')
    watched.start()
    watched.pass_time(30)
    assert not (tmp_path / "calls").exists()
    watched.counter(0, "mem_ecc_uncorrected", 1)
    watched.pass_time(95)
    (tmp_path / "works").touch()
    watched.pass_time(120)
    calls = files.read("calls").splitlines()
    assert len(calls) >= 2 if uses_slurm else not calls
    watched.pass_time(120)
    assert files.read("calls").splitlines() == calls


def test_epilog_fails_when_it_cannot_drain(after_job: NodeAfterJob) -> None:
    after_job.program("scontrol", "exit 1")
    after_job.neuron_ls([])
    assert after_job.epilog() == 1


def test_watch_of_a_slurm_node_reads_the_notices_but_not_the_nodes_of_a_membership(
    tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = WatchNode(tmp_path, aws, monkeypatch)
    watched.plan(slurm=True)
    watched.start()
    watched.pass_time()
    assert watched.notice is None
    end = {"kind": "pilot-stop", "at": "2026-11-24T18:00:00Z", "reason": "the Capacity Block ends"}
    watched.membership([], notices=[end])
    watched.pass_time(40)
    assert watched.notice
    assert (watched.notice["kind"], watched.notice["at"]) == ("pilot-stop", "2026-11-24T18:00:00Z")
    watched.announce("spot/instance-action", '{"action": "terminate", "time": "2026-11-22T18:00:00Z"}')
    watched.pass_time()
    assert watched.notice
    assert watched.notice["kind"] == "spot"
    assert not (watched.root / "etc/trn/cluster").exists()
