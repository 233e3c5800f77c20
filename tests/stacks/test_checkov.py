"""checkov, from the separate environment that `make checkov-env` creates."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.constructs.synth import ROOT, Json, cluster_template
from tests.stacks.other_stacks import EVERY, other_template
from tests.stacks.variants import COVERING, VARIANTS

CHECKOV = ROOT / ".venv-checkov" / "bin" / "checkov"
PASS_RATE = 0.97


@pytest.fixture(scope="module")
def checkov(tmp_path_factory: pytest.TempPathFactory) -> Json:
    """checkov's report on the templates of COVERING and EVERY, from one run without internet access."""
    if not CHECKOV.exists():
        pytest.fail(f"there is no {CHECKOV.relative_to(ROOT)}; run: make checkov-env")
    folder = tmp_path_factory.mktemp("checkov")
    for name in COVERING:
        shutil.copy(cluster_template(**VARIANTS[name]).file, folder / f"{name}.template.json")
    for name in EVERY:
        shutil.copy(other_template(name).file, folder / f"{name}.template.json")
    command = [CHECKOV, "--directory", folder, "--framework", "cloudformation", "--output", "json", "--compact"]
    result = subprocess.run(
        [*command, "--skip-download", "--soft-fail"],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "CKV_SKIP_PACKAGE_UPDATE_CHECK": "true", "LOG_LEVEL": "ERROR"},
    )
    return json.loads(result.stdout)


def test_checkov_reads_every_template(checkov: Json) -> None:
    assert checkov["summary"]["parsing_errors"] == 0
    assert {Path(check["file_path"]).name for check in checkov["results"]["passed_checks"]} == {
        f"{name}.template.json" for name in [*COVERING, *EVERY]
    }


def test_checkov_passes_97_percent_or_better(checkov: Json) -> None:
    passed, failed = checkov["summary"]["passed"], checkov["summary"]["failed"]
    failures = {(check["check_id"], check["resource"]) for check in checkov["results"]["failed_checks"]}
    print(f"checkov: {passed} of {passed + failed} checks passed")
    assert passed / (passed + failed) >= PASS_RATE, failures


def test_skipped_checkov_checks_have_a_reason_on_the_resource(checkov: Json) -> None:
    reasons = {
        check["check_id"]: check["check_result"]["suppress_comment"] for check in checkov["results"]["skipped_checks"]
    }
    assert reasons
    assert all(len(reason) > 20 for reason in reasons.values()), reasons
