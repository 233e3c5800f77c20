"""The precompile host: it runs its only job like a node, and then reports the end until it is terminated."""

import json
from pathlib import Path

import pytest

from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.watch_job_node import JOB, SPEC, JobNode
from tests.userdata.watch_node import BUCKET
from trainium_userdata.node.trn_node import files
from trainium_userdata.node.trn_node.imds import Imds
from trainium_userdata.node.trn_node.objects import Objects
from trainium_userdata.node.trn_node.precompile_host import IDLE_SECONDS, REPORT_SECONDS, PrecompileHost
from trainium_userdata.node.trn_node.watch import TICK

OWN_RECORD = {"instance_id": INSTANCE_ID, "state": "proven", "reason": "", "address": "127.0.0.2"}
REPORT = f"{BUCKET}/precompile/{INSTANCE_ID}.json"


class Host(JobNode):
    """A host. `pass_time` runs the program of the host instead of a watch."""

    now: float

    def __init__(self, root: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(root, aws, monkeypatch)
        files.write(files.LOCATIONS, f"TRN_REGION={aws.region}\nTRN_REPORT_URL=s3://{BUCKET}/precompile\n")
        self.host = PrecompileHost(OWN_RECORD, Objects(Imds(retries=0), retries=0), self.clock)

    def clock(self) -> float:
        return self.now

    def pass_time(self, seconds: float = 2 * TICK) -> None:
        for _ in range(0, int(seconds), TICK):
            self.now += TICK
            self.host.step()

    def submit_to_host(self) -> None:
        """Submit a job for the host, and none for the cluster."""
        self.aws.records[f"{BUCKET}/precompile.json"] = json.dumps({**SPEC, "nodes": 1, "retries": 0})

    def end_job(self, result: str) -> None:
        self.end_attempt(result)
        self.pass_time()

    @property
    def reported(self) -> str | None:
        text = self.aws.records.get(REPORT)
        return None if text is None else json.loads(text)["state"]


@pytest.fixture
def host(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, aws, monkeypatch)


def test_host_starts_its_job_alone_and_reports_nothing_meanwhile(host: Host) -> None:
    host.submit_to_host()
    host.pass_time(2 * IDLE_SECONDS)
    assert len(host.starts) == 1
    assert host.object("attempts/1/start.json")["nodes"] == [{"instance_id": INSTANCE_ID, "address": "127.0.0.2"}]
    assert host.reported is None


@pytest.mark.parametrize("result", ["succeeded", "failed", "stopped", "time-limit", "node-lost"])
def test_host_reports_the_end_of_its_job_with_any_result(host: Host, result: str) -> None:
    host.submit_to_host()
    host.pass_time()
    host.end_job(result)
    assert host.object("end.json")["result"] == result
    assert host.reported == "over"


def test_host_waits_until_the_job_has_stored_everything(host: Host) -> None:
    host.submit_to_host()
    host.pass_time()
    host.end_attempt("succeeded")
    host.unit("deactivating")
    host.pass_time(30)
    assert host.reported is None


def test_host_repeats_its_report_until_it_is_ended(host: Host) -> None:
    host.submit_to_host()
    host.pass_time()
    host.end_job("succeeded")
    del host.aws.records[REPORT]
    host.pass_time(REPORT_SECONDS)
    assert host.reported == "over"


def test_host_without_a_job_reports_after_ten_minutes(host: Host) -> None:
    host.pass_time(IDLE_SECONDS - 60)
    assert host.reported is None
    host.pass_time(120)
    assert host.reported == "over"


def test_host_ignores_the_job_of_the_nodes(host: Host) -> None:
    host.submit(id=JOB)
    host.pass_time(60)
    assert host.starts == []
