"""`trn audit`: the tables, the report file, and the exit code. tests/core tests which resources count as left."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.cli.running import GOOD, run
from tests.core.fake_audit import CLUSTER, FakeAuditedAccount, FakeLister, resource
from tests.core.plans import GOOD as SETTINGS
from tests.core.plans import from_settings
from trainium_cli.cluster import audit_command
from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation
from trainium_core.audit.resource import Charge, ChargedItem
from trainium_core.clusters.cluster import ClusterStacks

GP3 = Charge(items=(ChargedItem(product="gp3-storage", quantity=Decimal(100)),))
VOLUME_LEFT = resource("vol-1", cluster=CLUSTER, charge=GP3)
SNAPSHOT_LEFT = resource("snap-1", cluster=CLUSTER, charge=Charge(unpriced="snapshot storage"))

EMPTY = FakeAuditedAccount()
LEFT = FakeAuditedAccount(lister=FakeLister(found=[VOLUME_LEFT, SNAPSHOT_LEFT]))
DENIED = FakeAuditedAccount(lister=FakeLister(found=None))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    return tmp_path


def invoke(monkeypatch: pytest.MonkeyPatch, account: FakeAuditedAccount, *arguments: str) -> Result:
    monkeypatch.setattr(audit_command, "AwsAuditedAccount", lambda _region, **_: account)
    return run("audit", *GOOD, *arguments)


def report(folder: Path, ending: str) -> str:
    (file,) = folder.glob(f"audit-{CLUSTER}-*.{ending}")
    return file.read_text()


@pytest.mark.parametrize(
    ("account", "code", "says"),
    [
        (EMPTY, ExitCode.OK, f"nothing left of {CLUSTER} in us-west-2; kinds of resources listed: 1"),
        (
            LEFT,
            ExitCode.NOT_READY,
            f"2 resources left of {CLUSTER} in us-west-2, per month: at least $8.00, 1 amount",
        ),
        (
            DENIED,
            ExitCode.UNKNOWN,
            f"unknown whether anything is left of {CLUSTER} in us-west-2; 1",
        ),
    ],
)
def test_last_line_and_exit_code_match_the_result(
    monkeypatch: pytest.MonkeyPatch, account: FakeAuditedAccount, code: ExitCode, says: str
) -> None:
    ended = invoke(monkeypatch, account)
    assert ended.exit_code == code
    assert ended.stdout.splitlines()[-1].startswith(says)


def test_left_resource_is_shown_with_its_evidence_and_price(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = invoke(monkeypatch, LEFT).stdout
    volume, snapshot = (next(line for line in shown.splitlines() if name in line) for name in ("vol-1", "snap-1"))
    assert volume.split()[-3:] == ["tag", "trn:cluster", "$8.00"]
    assert snapshot.split()[-1] == "unknown"


def test_report_has_time_account_region_and_calls(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    invoke(monkeypatch, LEFT)
    printed = json.loads(report(folder, "json"))
    assert (printed["account"], printed["region"], printed["calls"]) == (
        "123456789012",
        "us-west-2",
        {"ec2:DescribeVolumes": 1},
    )
    assert abs((datetime.now(UTC) - datetime.fromisoformat(printed["time"])).total_seconds()) < 1800
    page = report(folder, "md")
    expected = ("123456789012", "us-west-2", "ec2:DescribeVolumes", "vol-1", "snap-1", "unknown: snapshot storage")
    assert [word for word in expected if word not in page] == []


def test_json_equals_the_report(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    ended = invoke(monkeypatch, LEFT, "--json")
    printed: dict[str, Any] = json.loads(ended.stdout)
    assert ended.exit_code == ExitCode.NOT_READY
    assert Path(printed.pop("report")).name.endswith(".md")
    assert printed == json.loads(report(folder, "json"))
    assert [one["usd_per_month"] for one in printed["resources"]] == [8.0, None]
    assert printed["usd_per_month"]["left"] == {"at_least": 8.0, "unknown_prices": 1}


@pytest.mark.parametrize(
    ("account", "code"), [(EMPTY, ExitCode.UNKNOWN), (LEFT, ExitCode.NOT_READY)], ids=["nothing left", "left"]
)
def test_unwritable_report_still_shows_the_findings(
    monkeypatch: pytest.MonkeyPatch, account: FakeAuditedAccount, code: ExitCode
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", refuse)
    ended = invoke(monkeypatch, account)
    assert ended.exit_code == code
    assert "The report could not be written to .: No space left on device" in ended.stderr
    assert " left of trn-pilot in us-west-2" in ended.stdout.splitlines()[-1]


def test_cluster_without_stacks_is_searched_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_command, "AwsAuditedAccount", lambda _region, **_: EMPTY)
    ended = run("audit", "--region", "us-west-2", "--cluster", CLUSTER)
    assert ended.exit_code == ExitCode.OK
    assert ended.stderr.startswith(f"No stack in us-west-2 belongs to {CLUSTER}. --stack NAME also finds")


def test_missing_region_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    ended = run("audit", "--cluster", CLUSTER)
    assert (ended.exit_code, ended.stderr.startswith("No region")) == (ExitCode.BAD_INPUT, True)


def test_only_the_command_uses_stacks_that_were_read_before(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """`trn down` audits after it has destroyed the stacks that it read."""
    known = list[ClusterStacks | None]()

    def account(_region: str, **given: Any) -> FakeAuditedAccount:
        known.append(given["known"])
        return EMPTY

    monkeypatch.setattr(audit_command, "AwsAuditedAccount", account)
    stacks = ClusterStacks(stacks=())
    audit_command.audit_cluster(
        Invocation(cluster_stacks={"us-west-2": stacks}), from_settings(**SETTINGS), ("TrnClusterStack",), folder
    )
    run("audit", *GOOD, "--folder", str(folder))
    assert known == [None, stacks]
