"""The verification of a node computes as the user of jobs. `make security` runs this file, because it needs root."""

from pathlib import Path

from tests.userdata.aws_stand_in import AwsStandIn
from tests.userdata.plans import plan_for
from tests.userdata.verified_node import VerifiedNode
from trainium_userdata.node.trn_node import job_user, self_test


def test_self_test_runs_as_job_user(tmp_path: Path, aws: AwsStandIn) -> None:
    node = VerifiedNode(tmp_path, plan_for("trn2.3xlarge"), aws)
    record = node.run("verify").record
    assert record
    assert record.state == "verified", record.reason
    programs = {Path(line.split()[3]).name for line in node.read("runuser.calls").splitlines()}
    assert programs == {"python", "nccom-test"}
    assert (node.root / self_test.CACHE).stat().st_uid == job_user.JOB_UID
