"""The commands of cloud-init on a node: they fetch, check and run the node script, or report the reason."""

import json
import re

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.booting_node import SCRIPT_OBJECT
from tests.userdata.conftest import NodeMaker
from tests.userdata.plans import plan_for
from trainium_core.plan.node_settings import node_settings
from trainium_userdata.expectations import node_expectations
from trainium_wire.node_record import NodeRecord

PLAN = plan_for("trn2.48xlarge", nodes=2, setup_script="echo hello\n")
RECORD = "cluster-records/nodes/i-0123456789abcdef0.json"
START = [
    "systemd-sysusers trn-job.conf",
    "systemctl mask --quiet --no-reload user@60800.service",
    "systemctl enable --quiet --no-reload trn-node.service",
    "systemctl daemon-reload",
    "systemctl restart trn-node.service",
]


def reason(aws: AwsStandIn) -> str:
    record = NodeRecord.from_json(aws.records[RECORD])
    assert record.state == "failed"
    return record.reason


def test_contents_of_the_script_are_installed_and_started(node_for: NodeMaker):
    node = node_for(PLAN)
    run = node.install()
    assert (run.exit_code, run.calls) == (0, START), run.output
    assert json.loads(node.read("etc/trn/plan.json")) == node_expectations(node_settings(PLAN))
    assert node.read("var/lib/trn/setup.sh") == "echo hello\n"
    assert "Restart=always" in node.read("etc/systemd/system/trn-node-watch.service")
    assert "WantedBy=multi-user.target" in node.read("etc/systemd/system/trn-node.service")
    assert (node.root / "opt/trn/trn_node/watch.py").exists()
    assert "$nrconf{override_rc}{qr(^trn-)} = 0;" in node.read("etc/needrestart/conf.d/trn-node.conf")
    assert 'Package-Blacklist { "linux-"; "aws-neuronx-"; };' in node.read("etc/apt/apt.conf.d/60trn-node")


def test_setup_script_with_file_separators_is_installed_unchanged(node_for: NodeMaker):
    script = "cat <<'X'\n@@FILE /etc/other 644\nEND @@FILE\nEND @@FILE_\nX\n"
    node = node_for(plan_for("trn1.2xlarge", setup_script=script)).install_copy()
    assert node.read("var/lib/trn/setup.sh") == script
    assert not (node.root / "etc/other").exists()


def test_installed_files_have_their_modes(node_for: NodeMaker):
    node = node_for(PLAN).install_copy()
    # Only root may read the setup script.
    expected = {"opt/trn/boot.sh": 0o755, "var/lib/trn/setup.sh": 0o700, "opt/trn/node_script.sh": 0o600}
    assert {path: (node.root / path).stat().st_mode & 0o777 for path in expected} == expected


def test_unverified_node_makes_cloud_init_fail(node_for: NodeMaker):
    node = node_for(PLAN)
    node.record_calls("systemctl", '[[ "$1" != restart ]]')
    assert node.install().exit_code != 0


def test_copied_node_is_installed_again(node_for: NodeMaker):
    node = node_for(PLAN).install_copy()
    node.write("var/lib/cloud/data/instance-id", "i-0fedcba9876543210\n")
    node.write("etc/trn/cluster", "HEAD_NODE=10.42.0.11\n")
    assert node.install().exit_code == 0
    assert node.read("var/lib/trn/instance-id") == "i-0fedcba9876543210\n"
    assert not (node.root / "etc/trn/cluster").exists()


def test_missing_script_is_reported(node_for: NodeMaker, aws: AwsStandIn):
    node = node_for(PLAN)
    del aws.records[SCRIPT_OBJECT]
    run = node.install()
    assert (run.exit_code, run.calls) == (1, []), run.output
    assert reason(aws) == ("the node script could not be fetched: there is no s3://cluster-assets/node-script.sh")


def test_script_with_another_digest_is_not_run(node_for: NodeMaker, aws: AwsStandIn):
    node = node_for(PLAN)
    aws.records[SCRIPT_OBJECT] += "\n"
    run = node.install()
    assert (run.exit_code, run.calls) == (1, [])
    assert re.search("is not the one that was deployed: SHA-256 [0-9a-f]{64}, not [0-9a-f]{64}$", reason(aws))


def test_refusal_of_s3_is_reported_on_the_console(node_for: NodeMaker, aws: AwsStandIn):
    node = node_for(PLAN)
    aws.s3_refuses = True
    assert node.install().exit_code == 1
    assert "trn-node FAILED: the node script could not be fetched: " in node.read("dev/console")
    assert "AccessDenied" in node.read("dev/console")


def test_node_without_python_is_reported_on_the_console(node_for: NodeMaker):
    node = node_for(PLAN)
    node.without("python3")
    assert node.install().exit_code == 1
    assert "trn-node FAILED: python3 is not installed" in node.read("dev/console")
