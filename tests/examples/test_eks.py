"""The app of examples/eks is synthesised."""

import os
import subprocess
import sys
from pathlib import Path

from tests.constructs.synth import ROOT, Template


def test_app_has_two_groups_of_trainium_nodes_without_nodes(tmp_path: Path) -> None:
    example = ROOT / "examples/eks"
    environment = os.environ | {"CDK_OUTDIR": str(tmp_path)}
    subprocess.run([sys.executable, example / "app.py"], cwd=tmp_path, env=environment, check=True, timeout=300)
    template = Template(tmp_path / "TrainingOnEks.template.json")
    groups = [one["Properties"] for one in template.resources("AWS::EKS::Nodegroup").values()]
    sizes = {one["Labels"]["trn/cluster"]: one["ScalingConfig"]["DesiredSize"] for one in groups if "Labels" in one}
    assert sizes == {"eks-trn1": 0, "eks-trn2": 0}
    assert all(one["AmiType"].startswith("AL2023") for one in groups)  # EKS has no others for this version.
    readme = (example / "README.md").read_text()
    assert all(f"trn/cluster={name}" in readme for name in sizes)
