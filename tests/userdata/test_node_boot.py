"""The shell's part of a boot, run to its end on a node in a folder."""

import base64
import os
import pwd
import shlex
import subprocess
from typing import Any

import pytest

from tests.userdata.booting_node import BootingNode
from tests.userdata.conftest import NodeMaker
from tests.userdata.plans import plan_for
from trainium_core.plan import Plan
from trainium_wire.cache_place import NATIVE_LOCAL_FOLDER, NATIVE_SETTINGS

PLAN = plan_for("trn1.32xlarge", nodes=2)
PORTS = "proc/sys/net/ipv4/ip_local_reserved_ports"
WATCH = "systemctl start --no-block trn-node-watch.service"


def with_setup_script(text: str) -> Plan:
    return plan_for("trn1.32xlarge", setup_script=text)


def reported(calls: list[str]) -> list[str]:
    return [call for call in calls if call.startswith("trn-node")]


def test_healthy_node_is_verified_once_and_then_watched(node_for: NodeMaker):
    run = node_for(PLAN).install_copy().boot()
    assert run.exit_code == 0, run.output
    assert [call for call in run.calls if call.startswith("trn-node") or call == WATCH] == ["trn-node verify", WATCH]


def test_unverified_node_is_not_watched_and_reported_once(node_for: NodeMaker):
    run = node_for(PLAN).install_copy("exit 1").boot()
    assert (run.exit_code, reported(run.calls), WATCH in run.calls) == (1, ["trn-node verify"], False)


def test_driver_that_may_recover_is_reloaded_once(node_for: NodeMaker):
    run = node_for(PLAN).install_copy('[[ "$*" == *--last* ]] || exit 3').boot()
    wanted = ("trn-node", "rmmod", "modprobe")
    assert run.exit_code == 0
    assert [call for call in run.calls if call.startswith(wanted)] == [
        "trn-node verify",
        "rmmod neuron",
        "modprobe neuron",
        "trn-node verify --last",
    ]


def test_aborted_verification_is_reported_with_its_last_output(node_for: NodeMaker):
    run = node_for(PLAN).install_copy('[[ $1 == report ]] || { echo "NameError: oops" >&2; exit 2; }').boot()
    assert run.exit_code == 1
    assert reported(run.calls)[-1] == (
        "trn-node report failed the verification was aborted with exit code 2: NameError: oops"
    )


def test_service_restart_during_a_job_keeps_the_node_verified(node_for: NodeMaker):
    node = node_for(PLAN).install_copy('[[ ! -e "$ROOT/job" ]] || exit 2')
    assert node.boot().exit_code == 0
    node.write("job")
    run = node.boot()
    assert (run.exit_code, reported(run.calls), WATCH in run.calls) == (0, ["trn-node verify"], True), run.output


def test_unexpected_command_failure_is_named_with_its_step(node_for: NodeMaker):
    node = node_for(PLAN).install_copy()
    (node.root / PORTS).unlink()
    run = node.boot()
    assert run.exit_code == 1
    assert reported(run.calls)[-1].endswith("in the step: reserve the ports")
    assert 'trn-node report failed "ports=$(< "$setting")" failed with exit code 1' in reported(run.calls)[-1]


def test_node_that_is_shut_down_has_not_failed(node_for: NodeMaker):
    run = node_for(PLAN).install_copy("kill $PPID; exit 143").boot()
    assert (run.exit_code, reported(run.calls)) == (143, ["trn-node verify"])


def test_locations_missing_from_cloud_init_are_reported(node_for: NodeMaker):
    node = node_for(PLAN).install_copy()
    (node.root / "etc/trn/places.env").unlink()
    assert reported(node.boot().calls) == ["trn-node report failed cloud-init did not write /etc/trn/places.env"]


def test_environment_has_the_settings_of_native_pytorch(node_for: NodeMaker):
    node = node_for(plan_for("trn2.48xlarge", ami="ami-0123456789abcdef0")).install_copy()
    node.boot()
    settings = {f"{name}={value}" for name, value in NATIVE_SETTINGS.items()}
    assert settings <= set(node.read("etc/trn/environment").splitlines())


def test_shells_do_not_use_a_read_only_cache(node_for: NodeMaker):
    node = node_for(plan_for("trn2.48xlarge", nodes=4)).install_copy()
    node.write("etc/trn/places.env", node.read("etc/trn/places.env") + "TRN_CACHE_ACCESS=read\n")
    node.boot()
    assert "NEURON_COMPILE_CACHE_URL" not in node.read("etc/trn/environment")


def test_environment_has_the_variables_for_training(node_for: NodeMaker):
    node = node_for(plan_for("trn2.48xlarge", nodes=4)).install_copy()
    node.boot()
    assert node.read("etc/trn/environment").splitlines() == [
        "AWS_REGION=us-west-2",
        "AWS_DEFAULT_REGION=us-west-2",
        "MALLOC_ARENA_MAX=64",
        "FI_PROVIDER=efa",
        "FI_EFA_USE_DEVICE_RDMA=1",
        "NEURON_LOGICAL_NC_CONFIG=2",
        "TRN_NEURON_CORES=64",
        "TRN_RENDEZVOUS_PORT=41000",
        "NEURON_COMPILE_CACHE_URL=s3://cluster-cache/neuron-compile-cache/direct",
    ]
    assert node.read("opt/aws/neuron/logical_nc_config") == "NEURON_LOGICAL_NC_CONFIG=2\n"


def test_environment_of_gpus_has_nothing_of_neuron(node_for: NodeMaker):
    node = node_for(plan_for("p5.4xlarge")).install_copy()
    node.boot()
    assert node.read("etc/trn/environment").splitlines() == [
        "AWS_REGION=us-west-2",
        "AWS_DEFAULT_REGION=us-west-2",
        "FI_PROVIDER=efa",
        "FI_EFA_USE_DEVICE_RDMA=1",
        "NCCL_SOCKET_IFNAME=^docker,lo,veth",
        "TRN_GPUS=1",
        "TRN_RENDEZVOUS_PORT=41000",
    ]


def test_user_variables_are_set_unchanged(node_for: NodeMaker):
    node = node_for(PLAN).install_copy()
    value = 'it\'s "$HOME" `x` \\ end'
    node.write("etc/trn/environment.base64", f"NOTE={base64.b64encode(value.encode()).decode()}\nEMPTY=\n")
    assert node.boot().exit_code == 0
    note, empty = node.read("etc/trn/environment").splitlines()[-2:]
    assert (shlex.split(note), shlex.split(empty)) == ([f"NOTE={value}"], ["EMPTY="])


def test_native_pytorch_compiles_in_folders_of_each_user(framework_node: BootingNode):
    names = ("TORCH_NEURONX_NEFF_CACHE_DIR", NATIVE_LOCAL_FOLDER)
    shown = " ".join(f"${name}" for name in names)
    found = logged_in(framework_node, then=f"; echo {shown}", **{names[0]: "/mine"})
    assert found[-2:] == ["/mine", f"/var/tmp/trn-{os.getuid()}/neff/.local"]


LOGIN_SHELL = """sed "s#/etc/trn#$ROOT/etc/trn#g" "$ROOT/etc/profile.d/trn.sh" >"$ROOT/profile"; . "$ROOT/profile"
echo "$(command -v torchrun) ${USER:-} ${AWS_REGION:-} ${NEURON_RT_ROOT_COMM_ID:-unset}" """
"""The profile of a login shell on a node whose root is a folder."""


def logged_in(node: BootingNode, then: str = "", **variables: str) -> list[str]:
    """The path of torchrun, user, region and root id of the collectives, in a shell with an empty environment."""
    environment = {"PATH": "/usr/bin:/bin", "ROOT": str(node.root), **variables}
    return subprocess.run(
        ["sh", "-c", LOGIN_SHELL + then], env=environment, capture_output=True, text=True
    ).stdout.split()


@pytest.fixture
def framework_node(node_for: NodeMaker) -> BootingNode:
    """A booted node with a framework and a membership."""
    node = node_for(PLAN).install_copy()
    for environment in ("framework", "own"):
        node.write(f"{environment}/bin/torchrun")
        (node.root / environment / "bin/torchrun").chmod(0o755)
    run = node.boot(FRAMEWORK=f"{node.root}/framework")
    assert run.exit_code == 0, run.output
    node.write("etc/trn/cluster", "HEAD_NODE=10.42.0.4\nTRN_NODE_RANK=1\nTRN_NODES=2\n")
    return node


def test_login_shell_has_torchrun_user_and_region(framework_node: BootingNode):
    user = pwd.getpwuid(os.getuid()).pw_name
    assert logged_in(framework_node) == [f"{framework_node.root}/framework/bin/torchrun", user, "us-west-2", "unset"]


def test_setup_script_has_user_region_and_home_of_a_login(node_for: NodeMaker):
    node = node_for(with_setup_script('echo "$USER $AWS_REGION $HOME" >"$ROOT/seen"')).install_copy()
    assert node.boot().exit_code == 0
    assert node.read("seen") == "root us-west-2 /root\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "41000,48620"),
        ("2703,9808-9809", "2703,9808-9809,41000,48620"),
        ("1,41000,5", "1,41000,5,48620"),
    ],
)
def test_our_ports_join_the_reserved_ports(before: str, after: str, node_for: NodeMaker):
    node = node_for(PLAN).install_copy()
    node.write(PORTS, before + "\n")
    node.boot()
    assert node.read(PORTS) == after + "\n"
    assert node.read("etc/sysctl.d/99-trn.conf") == f"net.ipv4.ip_local_reserved_ports = {after}\n"


def test_ports_reserved_by_others_at_boot_are_kept(node_for: NodeMaker):
    node = node_for(PLAN).install_copy()
    node.write(
        "etc/sysctl.d/50-other.conf", "# theirs\nnet.ipv4.ip_local_reserved_ports = 7000,7001\nvm.swappiness=1\n"
    )
    node.write("usr/lib/sysctl.d/10-image.conf", "net.ipv4.ip_local_reserved_ports=61678\n")
    node.boot()
    assert node.read(PORTS) == "61678,7000,7001,41000,48620\n"


def test_limits_are_raised_for_sessions_and_services(node_for: NodeMaker):
    node = node_for(PLAN)
    run = node.install()
    assert "* - memlock unlimited\n* soft nofile 65536\n* hard nofile 524288\n" in node.read(
        "etc/security/limits.d/99-trn.conf"
    )
    assert "DefaultLimitNOFILE=65536:524288\n" in node.read("etc/systemd/system.conf.d/99-trn.conf")
    assert "systemctl daemon-reload" in run.calls


def test_running_session_and_container_daemons_get_the_limits(node_for: NodeMaker):
    node = node_for(PLAN)
    node.program("pgrep", """case "$*" in *ssm*) echo 11 ;; *dockerd*) echo 12; echo 13 ;; esac""")
    node.record_calls("prlimit")
    assert [call for call in node.install().calls if call.startswith("prlimit")] == [
        "prlimit --pid 12 --memlock=unlimited",
        "prlimit --pid 13 --memlock=unlimited",
        "prlimit --pid 11 --memlock=unlimited --nofile=65536:524288",
    ]


def test_second_boot_writes_the_same_environment_and_ports(node_for: NodeMaker):
    node = node_for(plan_for("trn2.3xlarge", setup_script="true")).install_copy()
    written = ("etc/trn/environment", "etc/sysctl.d/99-trn.conf", PORTS)
    node.boot()
    first = [node.read(path) for path in written]
    second_boot = node.boot()
    assert second_boot.exit_code == 0
    assert [node.read(path) for path in written] == first


def test_setup_script_runs_between_verification_and_report(node_for: NodeMaker):
    run = node_for(with_setup_script('echo "setup $TRN_NEURON_CORES" >>"$ROOT/calls"')).install_copy().boot()
    assert run.exit_code == 0, run.output
    assert [call for call in run.calls if call.startswith(("trn-node", "setup"))][:3] == [
        "trn-node verify --hold",
        "setup 32",
        "trn-node report",
    ]


def test_dependents_of_the_node_start_before_its_setup_script(node_for: NodeMaker):
    node = node_for(with_setup_script('echo "setup ${NOTIFY_SOCKET-}" >>"$ROOT/calls"')).install_copy()
    node.record_calls("systemd-notify")
    calls = node.boot(NOTIFY_SOCKET="/run/systemd/notify").calls
    assert calls[calls.index("trn-node verify --hold") :][:3] == [
        "trn-node verify --hold",
        "systemd-notify --ready",
        "setup ",
    ]


def test_copied_node_is_not_verified_before_its_installation(node_for: NodeMaker):
    node = node_for(PLAN).install_copy()
    node.record_calls("systemd-notify")
    node.write("var/lib/cloud/data/instance-id", "i-0fedcba9876543210\n")
    run = node.boot(NOTIFY_SOCKET="/run/systemd/notify")
    assert (run.exit_code, run.calls) == (0, ["systemd-notify --ready"])


def test_failed_setup_script_is_reported_with_its_last_line(node_for: NodeMaker):
    run = node_for(with_setup_script("echo first\necho 'no such wheel' >&2\nexit 7")).install_copy().boot()
    assert (run.exit_code, WATCH in run.calls) == (1, False)
    assert reported(run.calls)[-1] == ("trn-node report failed the setup script failed with exit code 7: no such wheel")


@pytest.mark.parametrize(
    ("settings", "call"),
    [
        (
            {"fsx_lustre": 1200},
            "mount -t lustre -o noatime,flock fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com@tcp:/abcdefgh ",
        ),
        (
            {"efs": "new"},
            "mount -t nfs4 -o nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport "
            "fs-0123456789abcdef0.efs.us-west-2.amazonaws.com:/ ",
        ),
    ],
)
def test_file_systems_are_mounted_as_aws_documents(settings: dict[str, Any], call: str, node_for: NodeMaker):
    node = node_for(plan_for("trn1.32xlarge", **settings)).install_copy()
    run = node.boot()
    assert run.exit_code == 0, run.output
    assert [found for found in run.calls if found.startswith(call)], run.calls


@pytest.mark.parametrize(
    ("mount", "found"),
    [
        ("sleep 60", "no answer within 0.2 seconds"),
        ("echo 'mount.lustre: No such device' >&2; exit 19", "mount.lustre: No such device"),
    ],
)
def test_file_system_that_does_not_mount_is_named_with_a_hint(mount: str, found: str, node_for: NodeMaker):
    node = node_for(plan_for("trn1.32xlarge", fsx_lustre=1200)).install_copy()
    node.record_calls("mount", mount)
    run = node.boot(TRN_MOUNT_SECONDS="0.2" if "sleep" in mount else "30")
    assert run.exit_code == 1
    assert reported(run.calls) == [
        "trn-node report failed FSx for Lustre file system fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com could not "
        f"be mounted at /fsx: {found}; check that it is AVAILABLE, and that its security group lets the nodes in "
        "on TCP 988 and 1018-1023"
    ]


@pytest.mark.parametrize(("trn_node", "says"), [("true", "verified"), ("exit 1", "FAILED: see trn-node status")])
def test_login_message_describes_the_node(trn_node: str, says: str, node_for: NodeMaker):
    node = node_for(plan_for("trn1.32xlarge", efs="new")).install_copy(trn_node)
    node.boot()
    shown = node.read("etc/motd.d/trn")
    assert shown.startswith("trn-pilot: trn1.32xlarge, 16 Neuron devices, 32 NeuronCores, 8 EFA devices\n")
    assert says in shown
    assert "/scratch" in shown
    assert "/efs" in shown
