"""What an earlier run has synthesised is what this one would: all that decides it is in the digest."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import sources
from tests.constructs.synth import cluster_template
from tests.stacks.other_stacks import EVERY, other_template, settings_of, stack_of
from tests.stacks.variants import COVERING, VARIANTS
from tests.verdicts import Verdicts

HELPERS = ("tests/__init__.py", "tests/constructs/__init__.py", "tests/kept.py", "tests/shared.py", "tests/sources.py")
"""What tests/constructs/synth.py imports that decides nothing."""
ROOTS = ("", "src", "constructs", "userdata", "userdata/trainium_userdata/node")
SYNTHESIS = """
import json, pkgutil, sys
from tests import shared
from tests.constructs.synth import template_of

shared.begin()
asked = json.load(sys.stdin)
made = {name: template_of(pkgutil.resolve_name(kind), id, given).json for name, (kind, id, given) in asked.items()}
imported = [str(getattr(module, "__file__", None)) for module in list(sys.modules.values())]
shared.end()
json.dump({"made": made, "imported": imported}, sys.stdout)
"""


def asked() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Class, id and settings of stacks in which every setting occurs."""
    others = {
        name: (f"{stack_of(name).__module__}:{stack_of(name).__qualname__}", stack_id(name), settings_of(name))
        for name in EVERY
    }
    cluster = "stacks.trn_cluster_stack:TrnClusterStack"
    return {**others, **{name: (cluster, "TrnClusterStack", VARIANTS[name]) for name in COVERING}}


def stack_id(name: str) -> str:
    return other_template(name).file.name.removesuffix(".template.json")


def test_the_digested_files_alone_synthesise_the_same(tmp_path: Path, verdicts: Verdicts) -> None:
    """In a folder of their own: with the same assets too, since a template holds the digest of each."""

    def synthesised() -> dict[str, Any]:
        for name, file in sources.files([*sources.SYNTHESISED, *HELPERS]).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, tmp_path / name)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TRN_"))}
        run = subprocess.run(
            [sys.executable, "-c", SYNTHESIS],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": os.pathsep.join(str(tmp_path / root) for root in ROOTS)},
            input=json.dumps(asked()),
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert run.returncode == 0, run.stderr
        found = json.loads(run.stdout)
        libraries = Path(sys.prefix)
        imported = [Path(file) for file in found["imported"]]
        foreign = [one for one in imported if one.is_relative_to(sources.ROOT) and not one.is_relative_to(libraries)]
        return {"made": found["made"], "of the repository": [str(one) for one in foreign]}

    decided_by = [json.dumps(asked(), sort_keys=True), sources.of_a_synthesis(), Path(__file__).read_text()]
    found = verdicts.of(synthesised, *decided_by, sources.digest(HELPERS))
    assert found["of the repository"] == []
    assert found["made"] == {
        **{name: other_template(name).json for name in EVERY},
        **{name: cluster_template(**VARIANTS[name]).json for name in COVERING},
    }


def replace(file: Path) -> None:
    file.write_text("b")


def rename(file: Path) -> None:
    file.rename(file.with_name("other.py"))


def make_executable(file: Path) -> None:
    file.chmod(0o755)


def add(file: Path) -> None:
    file.with_name("added.toml").write_text("")


def remove(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize("change", [replace, rename, make_executable, add, remove])
def test_each_change_of_a_file_changes_the_digest(tmp_path: Path, change: Callable[[Path], None]) -> None:
    file = tmp_path / "core/data/facts.py"
    file.parent.mkdir(parents=True)
    file.write_text("a")
    file.chmod(0o644)
    before = sources.digest(["core"], tmp_path)
    assert sources.digest(["core"], tmp_path) == before
    change(file)
    assert sources.digest(["core"], tmp_path) != before


@pytest.mark.parametrize("name", ["CDK_CONTEXT_JSON", "AWS_REGION", "NODE_OPTIONS"])
def test_another_environment_decides_otherwise(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before = sources.of_a_synthesis()
    monkeypatch.setenv(name, "another")
    assert sources.of_a_synthesis() != before


def test_sources_that_python_may_have_read_before_they_were_written_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert sources.are_as_at_start()
    written = tmp_path / "written.py"
    written.write_text("")
    monkeypatch.setattr(sources, "SYNTHESISED", (*sources.SYNTHESISED, os.path.relpath(written, sources.ROOT)))
    assert not sources.are_as_at_start()
