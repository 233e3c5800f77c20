"""The membership on a node. Peers are sockets on loopback; a network that drops packets is simulated."""

import contextlib
import json
import os
import pwd
import socket
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.node_files import BUCKET
from tests.userdata.watch_node import WatchNode
from trainium_userdata.node.trn_node import cluster, files, ssh_keys
from trainium_userdata.node.trn_node.cluster import PEERS_TIMEOUT_SECONDS
from trainium_wire.node_record import NodeRecord

PEER, OTHER_PEER = "i-0aaaaaaaaaaaaaaa1", "i-0aaaaaaaaaaaaaaa2"
NODES = [(PEER, "127.0.0.2"), (INSTANCE_ID, "127.0.0.3"), (OTHER_PEER, "127.0.0.4")]
FOURTH = ("i-0aaaaaaaaaaaaaaa3", "127.0.0.5")
SSH_KEYGEN = """\
[[ "${*:1:5}" == "-qt ed25519 -N  -f" ]] || exit 64
echo private >"$6"
echo "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI$(head -c 32 /dev/urandom | base64 | tr -d =) user@node" >"$6.pub"
"""
KEY, HOST_KEY = ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + letter * 43 for letter in "BC")


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> WatchNode:
    return WatchNode(tmp_path, aws, monkeypatch)


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Addresses whose packets are lost."""
    lost: set[str] = set()
    connect = socket.create_connection

    def attempt(target: tuple[str, int], seconds: float) -> socket.socket:
        if target[0] in lost:
            raise TimeoutError("timed out")
        return connect(target, seconds)

    monkeypatch.setattr(cluster, "socket", SimpleNamespace(create_connection=attempt))
    return lost


def peers_check(record: NodeRecord | None) -> tuple[str, str, bool]:
    assert record
    [check] = [check for check in record.checks if check.name == "peers"]
    return check.expected, check.found, check.ok


def test_environment_gets_rank_and_head_and_no_root_id(node: WatchNode):
    node.membership(NODES)
    node.pass_time()
    assert files.read("etc/trn/cluster").splitlines() == [
        "HEAD_NODE=127.0.0.2",
        "TRN_NODE_RANK=1",
        "TRN_NODES=3",
    ]
    assert files.read("etc/trn/hostfile") == "127.0.0.2\n127.0.0.3\n127.0.0.4\n"


def test_listening_peers_are_reached(node: WatchNode):
    with socket.create_server(("127.0.0.2", 0)) as listening:
        node.plan(rendezvous_port=listening.getsockname()[1])
        node.membership(NODES)
        node.pass_time()
    assert peers_check(node.sent) == ("2 of 2", "2 of 2", True)


def test_peer_whose_packets_get_lost_is_silent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cluster, "CONNECT_TIMEOUT_SECONDS", 0.2)
    # A listener with a full queue drops packets as a security group does.
    with socket.create_server(("127.0.0.2", 0), backlog=0) as full, contextlib.ExitStack() as queue:
        for _ in range(4):
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        assert cluster._unreachable_address(full.getsockname()) == "127.0.0.2"


def test_node_without_answering_peers_fails_with_their_names(node: WatchNode, unreachable: set[str]):
    unreachable.update({"127.0.0.2", "127.0.0.4"})
    node.membership(NODES)
    node.pass_time(PEERS_TIMEOUT_SECONDS + 30)
    assert node.sent
    assert node.sent.state == "failed"
    assert node.sent.reason == (
        f"peers: 0 of 2; {PEER} (127.0.0.2) does not answer; {OTHER_PEER} (127.0.0.4) does not answer: "
        "does the security group let all nodes reach each other?"
    )


@pytest.mark.parametrize(
    ("nodes", "silent", "state"),
    [
        (NODES[:2], {"127.0.0.2"}, "failed"),
        (NODES[1:], {"127.0.0.4"}, "draining"),
        ([*NODES, FOURTH], {"127.0.0.2", "127.0.0.4"}, "failed"),
        ([*NODES, FOURTH], {"127.0.0.4", "127.0.0.5"}, "draining"),
    ],
    ids=["pair, without rank 0", "pair, with rank 0", "four, without rank 0", "four, with rank 0"],
)
def test_half_of_the_cluster_without_rank_0_fails(
    nodes: Sequence[tuple[str, str]], silent: set[str], state: str, node: WatchNode, unreachable: set[str]
):
    unreachable.update(silent)
    node.membership(nodes)
    node.pass_time(PEERS_TIMEOUT_SECONDS + 30)
    assert node.record.state == state
    assert f"{len(nodes) - 1 - len(silent)} of {len(nodes) - 1}" in node.record.reason


def test_peer_that_answers_within_a_minute_fails_no_node(node: WatchNode, unreachable: set[str]):
    unreachable.add("127.0.0.4")
    node.membership(NODES)
    node.pass_time(PEERS_TIMEOUT_SECONDS / 2)
    assert node.sent is None
    unreachable.clear()
    node.pass_time()
    assert peers_check(node.sent) == ("2 of 2", "2 of 2", True)


def test_suppressed_peer_test_is_shown_and_does_not_fail(node: WatchNode, unreachable: set[str]):
    node.plan(suppress_checks=["peers"])
    unreachable.add("127.0.0.4")
    node.membership(NODES)
    node.pass_time(PEERS_TIMEOUT_SECONDS + 30)
    assert node.sent
    assert node.sent.state == "verified"
    assert peers_check(node.sent) == ("2 of 2", f"1 of 2; {OTHER_PEER} (127.0.0.4) does not answer (suppressed)", True)


def test_peers_that_stop_answering_later_do_not_fail_the_node(node: WatchNode, unreachable: set[str]):
    node.membership(NODES)
    node.pass_time()
    unreachable.update({"127.0.0.2", "127.0.0.4"})
    node.pass_time(300)
    assert node.record.state == "verified"


def test_new_membership_is_tested_again(node: WatchNode):
    node.membership(NODES)
    node.pass_time()
    node.membership(NODES[:2], version="v2")
    node.pass_time(60)
    assert node.sent
    assert node.sent.membership == "v2"
    assert peers_check(node.sent) == ("1 of 1", "1 of 1", True)


def test_hostfile_gets_the_address_of_a_replaced_node(node: WatchNode):
    node.membership(NODES)
    node.pass_time()
    node.membership([*NODES[:2], FOURTH], version="v2")
    node.pass_time(60)
    assert files.read("etc/trn/hostfile") == "127.0.0.2\n127.0.0.3\n127.0.0.5\n"


def test_denied_membership_is_an_error_only_after_a_success(node: WatchNode, capsys: pytest.CaptureFixture[str]):
    node.aws.s3_refuses = True
    node.pass_time(30)
    assert "membership" not in capsys.readouterr().out
    node.aws.s3_refuses = False
    node.membership(NODES)
    node.pass_time(30)
    node.aws.s3_refuses = True
    node.pass_time(60)
    assert "membership: S3Error" in capsys.readouterr().out


def test_membership_without_this_node_is_waited_out(node: WatchNode):
    node.membership(NODES[:1])
    node.pass_time(30)
    assert (files.read("etc/trn/cluster"), node.sent) == ("", None)
    node.membership(NODES, version="v2")
    node.pass_time()
    assert node.sent


def test_single_node_has_a_membership_and_no_peers(node: WatchNode):
    node.membership([(INSTANCE_ID, "127.0.0.3")])
    node.pass_time()
    assert node.sent
    assert node.sent.membership == "v1"
    assert "peers" not in [check.name for check in node.sent.checks]


def test_verification_meanwhile_keeps_the_results_of_peers(node: WatchNode):
    node.membership(NODES)
    node.pass_time()
    node.verify()
    node.pass_time()
    assert node.record.membership == "v1"
    assert peers_check(node.record) == ("2 of 2", "2 of 2", True)


@pytest.mark.parametrize("address", ["10.0.0.1; reboot", "$(reboot)", ""])
def test_invalid_address_is_never_written_to_a_shell_file(address: str, node: WatchNode):
    node.membership([(PEER, address), *NODES[1:]])
    node.pass_time()
    assert files.read("etc/trn/cluster") == ""


@pytest.fixture
def home(node: WatchNode, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder .ssh of the node's user, who also runs the tests, below the root of the node.

    ssh-keygen is a stand-in; in the lab, nodes log in to each other with real keys.
    """
    node.program("ssh-keygen", SSH_KEYGEN)
    monkeypatch.setattr(ssh_keys, "PROGRAMS", f"{node.programs}:{ssh_keys.PROGRAMS}")
    monkeypatch.setattr(ssh_keys, "USER_ID", os.getuid())
    folder = node.root / pwd.getpwuid(os.getuid()).pw_dir[1:]
    folder.mkdir(parents=True)
    files.write(ssh_keys.HOST_KEY, f"{HOST_KEY} root@node\n")
    node.plan(internode_ssh=True)
    node.membership(NODES)
    for name in (PEER, OTHER_PEER):
        node.aws.records[f"{BUCKET}/ssh/{name}.json"] = json.dumps([KEY, HOST_KEY])
    return folder / ".ssh"


def test_node_makes_a_key_once_and_shares_the_public_part(node: WatchNode, home: Path):
    node.pass_time()
    key = (home / "id_ed25519.pub").read_text()
    node.start()
    node.pass_time()
    assert (home / "id_ed25519.pub").read_text() == key
    assert json.loads(node.aws.records[f"{BUCKET}/ssh/{INSTANCE_ID}.json"]) == [" ".join(key.split()[:2]), HOST_KEY]


def test_peers_may_log_in_only_from_their_addresses(node: WatchNode, home: Path):
    node.pass_time()
    assert (home / "authorized_keys").read_text().splitlines() == [
        f'from="127.0.0.2" {KEY} # trn-node',
        f'from="127.0.0.4" {KEY} # trn-node',
    ]
    assert (home / "known_hosts").read_text().splitlines() == [
        f"127.0.0.2 {HOST_KEY} # trn-node",
        f"127.0.0.4 {HOST_KEY} # trn-node",
    ]
    for name in ("authorized_keys", "known_hosts"):
        assert (home / name).stat().st_mode & 0o777 == 0o600


def test_user_lines_stay_and_ours_are_replaced(node: WatchNode, home: Path):
    node.pass_time()
    with (home / "authorized_keys").open("a") as more:
        more.write("ssh-ed25519 AAAA the user's own\n")
    node.membership(NODES[:2], version="v2")
    node.pass_time(60)
    assert (home / "authorized_keys").read_text().splitlines() == [
        "ssh-ed25519 AAAA the user's own",
        f'from="127.0.0.2" {KEY} # trn-node',
    ]


def test_late_key_of_a_peer_is_waited_for(node: WatchNode, home: Path):
    keys = node.aws.records.pop(f"{BUCKET}/ssh/{PEER}.json")
    node.pass_time()
    assert not (home / "authorized_keys").exists()
    node.aws.records[f"{BUCKET}/ssh/{PEER}.json"] = keys
    node.pass_time(60)
    assert (home / "authorized_keys").exists()


@pytest.mark.parametrize("key", ["ssh-ed25519 AAAA\nssh-rsa B", 'command="reboot" ' + KEY, "", 3])
def test_invalid_key_is_never_trusted(key: object, node: WatchNode, home: Path):
    node.aws.records[f"{BUCKET}/ssh/{PEER}.json"] = json.dumps([key, KEY])
    node.pass_time()
    assert not (home / "authorized_keys").exists()


@pytest.mark.usefixtures("home")
def test_node_with_an_invalid_key_is_named(node: WatchNode, capsys: pytest.CaptureFixture[str]):
    node.aws.records[f"{BUCKET}/ssh/{PEER}.json"] = json.dumps(["ssh-rsa B", KEY])
    node.pass_time()
    assert f"keys: ValueError: {PEER} has stored an invalid key: not an ed25519 public key" in capsys.readouterr().out


def test_no_keys_are_made_without_the_setting(node: WatchNode, home: Path):
    node.plan(internode_ssh=False)
    node.pass_time(60)
    assert not home.exists()
