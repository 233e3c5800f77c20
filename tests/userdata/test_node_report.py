"""How a record leaves the node, the messages when it cannot, and the output of `trn-node status`."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.plans import plan_for
from tests.userdata.verified_node import VerifiedNode
from trainium_userdata.node.trn_node import status
from trainium_wire.keys import key_instance


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn) -> VerifiedNode:
    return VerifiedNode(tmp_path, plan_for("trn1.2xlarge"), aws)


def test_held_record_is_sent_by_report(node: VerifiedNode):
    node.run("verify", "--hold")
    outcome = node.run("report")
    assert outcome.record
    assert (outcome.exit_code, outcome.record.state) == (0, "verified")


def test_record_and_log_are_named_as_iam_names_the_node(node: VerifiedNode):
    node.write("etc/trn/places.env", node.read("etc/trn/places.env") + "TRN_ROLE_ID=AROAEXAMPLEEXAMPLE0\n")
    node.run("report", "failed", "the disk is full")
    names = {unquote(key.partition("/")[2]) for key in node.aws.records}
    own = f"AROAEXAMPLEEXAMPLE0:{INSTANCE_ID}"
    assert names == {f"nodes/{own}.json", f"logs/{own}.log"}
    assert {key_instance(name, name.partition("/")[0]) for name in names} == {INSTANCE_ID}


def test_later_failure_keeps_the_checks(node: VerifiedNode):
    node.run("verify", "--hold")
    outcome = node.run("report", "failed", "the setup script failed with exit code 7")
    assert outcome.record
    assert (outcome.exit_code, outcome.record.state) == (0, "failed")
    assert outcome.record.reason == "the setup script failed with exit code 7"
    assert len(outcome.record.checks) > 5


def test_failure_before_any_verification_is_reported(node: VerifiedNode):
    outcome = node.run("report", "failed", "the disk is full")
    assert outcome.record
    assert (outcome.record.instance_id, outcome.record.reason) == (INSTANCE_ID, "the disk is full")


def test_nothing_is_verified_without_a_verification(node: VerifiedNode):
    outcome = node.run("report")
    assert outcome.record
    assert (outcome.exit_code, outcome.record.state) == (1, "failed")
    assert outcome.record.reason == "the node was not verified"


def test_verified_node_without_a_stored_record_fails_on_the_console(node: VerifiedNode):
    node.aws.s3_refuses = True
    outcome = node.run("verify")
    assert outcome.exit_code == 1
    assert "trn-node FAILED: the record did not reach S3: S3 refuses PUT " in node.read("dev/console")
    assert "403 AccessDenied" in node.read("dev/console")


def test_instance_id_of_cloud_init_needs_no_metadata_service(node: VerifiedNode):
    node.aws.has_instance_id = False
    node.write("var/lib/cloud/data/instance-id", f"{INSTANCE_ID}\n")
    assert node.run("verify").record


def test_record_in_a_baked_image_is_not_used(node: VerifiedNode):
    node.run("verify")
    node.aws.has_instance_id = False
    node.write("var/lib/cloud/data/instance-id", "i-0fedcba9876543210\n")
    outcome = node.run("report", "failed", "the node script could not be fetched")
    assert outcome.record
    assert outcome.record.state == "verified"
    (rebooted,) = [text for key, text in node.aws.records.items() if key.endswith("/nodes/i-0fedcba9876543210.json")]
    assert json.loads(rebooted)["state"] == "failed"


def test_full_disk_does_not_stop_the_record(node: VerifiedNode):
    node.write("var/lib/trn", "in the way, as no folder can be made")
    outcome = node.run("verify")
    assert outcome.record
    assert outcome.record.state == "verified"


def test_status_shows_identity_reason_and_checks(node: VerifiedNode):
    node.run("verify")
    node.run("report", "failed", "the setup script failed")
    outcome = node.run("status")
    assert outcome.exit_code == 1
    assert outcome.output.startswith(f"{INSTANCE_ID} (10.42.0.11), trn1.2xlarge of ")
    assert "the setup script failed\n" in outcome.output
    assert "ok  self-test " in outcome.output


def test_status_of_node_in_cluster_shows_rank_and_notices(node: VerifiedNode):
    node.run("verify")
    node.write("etc/trn/cluster", "HEAD_NODE=10.42.0.11\nTRN_NODE_RANK=0\nTRN_NODES=2\n")
    node.write("run/trn/notice.json", json.dumps({"reason": "spot interruption", "at": "2026-11-21T12:00:00Z"}))
    output = node.run("status").output
    assert "rank 0 of 2 nodes, head node 10.42.0.11\n" in output
    assert "NOTICE: spot interruption, at 2026-11-21T12:00:00Z\n" in output


def test_status_without_a_readable_plan_names_no_type(node: VerifiedNode):
    node.write("etc/trn/plan.json", "{")
    node.run("verify")
    assert node.run("status").output.startswith(f"{INSTANCE_ID} (10.42.0.11), without a plan\n")


def test_status_is_available_as_json(node: VerifiedNode):
    node.run("verify")
    found = json.loads(node.run("status", "--json").output)
    assert (found["record"]["state"], found["program_version"]) == ("verified", status.program_version())


def test_program_version_changes_with_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "node"
    shutil.copytree(Path(status.__file__).parents[1], folder)
    monkeypatch.setattr(status, "__file__", str(folder / "trn_node/status.py"))
    versions = {status.program_version()}
    for file in sorted(folder.glob("trn_*/*.py")):
        file.write_text(f"{file.read_text()}#\n")
        versions.add(status.program_version())
    assert len(versions) == 1 + len(list(folder.glob("trn_*/*.py")))
    assert all(re.fullmatch("[0-9a-f]{12}", version) for version in versions)


def test_status_before_any_record_names_the_log(node: VerifiedNode):
    outcome = node.run("status")
    assert (outcome.exit_code, outcome.output) == (
        1,
        "No record yet: this node has not been verified. See /var/log/trn-node.log\n",
    )


def test_collectives_over_the_node_report_the_bandwidth(node: VerifiedNode):
    assert node.run("collectives").output == "correct, 22.0 GB/s; 91.2 GB/s at 256 MiB\n"
