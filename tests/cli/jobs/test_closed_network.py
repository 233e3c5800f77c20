"""`trn run` in a network without internet access."""

from pathlib import Path

import pytest

from tests.cli.jobs.cluster_with_jobs import TWO, cluster_with_jobs
from tests.cli.running import run
from trainium_cli.exit_codes import ExitCode


@pytest.mark.parametrize(
    ("egress", "warns"), [("vpc-endpoints", True), ("none", True), ("nat-gateway", False), (None, False)]
)
def test_downloads_in_a_closed_network_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, egress: str | None, warns: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    network = () if egress is None else ("-c", f"trn:egress={egress}")
    with cluster_with_jobs(monkeypatch):
        Path("train.py").write_text("model = AutoModel.from_pretrained('gpt2')\n")
        ended = run("run", *TWO, *network, "--dry-run", "--setup", "pip install trl", "train.py")
    assert ended.exit_code == ExitCode.OK, ended.output
    shown = ("no internet access", "setup: pip install trl", "train.py:1: AutoModel.from_pretrained('gpt2')")
    assert [text in ended.stderr for text in shown] == [warns] * len(shown)
