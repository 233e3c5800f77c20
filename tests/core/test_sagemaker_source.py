"""The packed source, the container entry's compatibility and compile cache, and the names of jobs."""

import ast
import io
import json
import os
import re
import sys
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.plans import cluster_names, from_settings
from trainium_core.engines.sagemaker.jobs import container_entry as container_entry_module
from trainium_core.engines.sagemaker.jobs.job import job_name
from trainium_core.engines.sagemaker.jobs.request import channel_digest
from trainium_core.jobs.problems import JobError
from trainium_core.jobs.source_files import LARGEST_SOURCE_MIB, input_files, left_out_text
from trainium_core.jobs.source_package import SourcePackage, pack_source
from trainium_wire import cache_place


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    for name in (
        "train.py",
        "models/net.py",
        ".git/config",
        "models/__pycache__/net.pyc",
        ".venv-x/bin/python",
        "a.pyc",
    ):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return folder


def unpacked(package: SourcePackage) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(package.archive)) as archive:
        return {entry.name: stream.read() for entry in archive if (stream := archive.extractfile(entry))}


def test_packed_directory_omits_ignored_files(source: Path) -> None:
    package = pack_source(source / "train.py", source)
    assert unpacked(package) == {"train.py": b"train.py", "models/net.py": b"models/net.py"}
    assert package.names == ("models/net.py", "train.py")
    assert package.unpacked_bytes == len("train.py" + "models/net.py")


def test_archive_is_independent_of_times_and_file_order(source: Path, tmp_path: Path) -> None:
    first = pack_source(source / "train.py", source)
    copy = tmp_path / "copy"
    (copy / "models").mkdir(parents=True)
    for name in reversed(first.names):
        (copy / name).write_bytes((source / name).read_bytes())
        os.utime(copy / name, (1, 1))
    second = pack_source(copy / "train.py", copy)
    assert (second.archive, channel_digest(second)) == (first.archive, channel_digest(first))


def test_omitted_files_are_reported(source: Path) -> None:
    (source / "linked.py").symlink_to("models/net.py")
    (source / "gone.py").symlink_to("models/gone.py")
    (source / "nets").symlink_to("models")
    (source / ".aws").mkdir()
    for secret in (".env", ".env.prod", "models/id_rsa", "cert.pem", ".aws/credentials"):
        (source / secret).write_text("secret")
    for name, target in {"my-env": ".env", "my-credentials": ".aws/credentials", "token": ".git/config"}.items():
        (source / name).symlink_to(target)
    os.mkfifo(source / "pipe")
    package = pack_source(source / "train.py", source)
    assert package.names == ("linked.py", "models/net.py", "train.py")
    assert unpacked(package)["linked.py"] == b"models/net.py"
    assert package.left_out == {
        **dict.fromkeys([".aws", ".env", ".env.prod", "cert.pem", "models/id_rsa"], "may contain a secret"),
        **dict.fromkeys(["my-credentials", "my-env", "token"], "a link to a file that is left out"),
        "gone.py": "a broken link",
        "nets": "a link to a directory",
        "pipe": "not a regular file",
    }


@pytest.mark.parametrize("target", ["shared/net.py", "shared", "gone", "/etc/hostname"])
@pytest.mark.parametrize("read", [lambda source: pack_source(source / "train.py", source), input_files])
def test_link_that_leaves_the_directory_is_refused(
    tmp_path: Path, source: Path, target: str, read: Callable[[Path], object]
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "net.py").write_text("of another project")
    (source / "models" / "mycfg").symlink_to(tmp_path / target)
    with pytest.raises(JobError) as raised:
        read(source)
    (problem,) = raised.value.problems
    assert problem.got == f"models/mycfg -> {(tmp_path / target).resolve()}"
    assert problem.allowed == f"links that end inside {source}"


def test_trnignore_replaces_gitignore(source: Path) -> None:
    for name in ("out/a.pt", "data/x", "models/old/b", "models/keep.log", "a.log"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (source / ".gitignore").write_text("# results\n/out/\n*.log\n")
    (source / "models" / ".gitignore").write_text("old\n!keep.log\n")
    (source / "data" / "outside").symlink_to("/etc/hostname")
    (source / ".trnignore").write_text("data/\n")
    package = pack_source(source / "train.py", source)
    assert package.left_out == {"data": ".trnignore"}
    (source / "data" / "outside").unlink()
    (source / ".trnignore").unlink()
    package = pack_source(source / "train.py", source)
    assert package.left_out == dict.fromkeys(["a.log", "models/old", "out"], ".gitignore")
    assert {"data/x", "models/keep.log", ".gitignore"} <= {*package.names}


def test_invalid_pattern_is_refused(source: Path) -> None:
    (source / ".trnignore").write_text("!\n")
    with pytest.raises(JobError, match=r"\.trnignore.*\n.*patterns"):
        pack_source(source / "train.py", source)


def test_ignored_script_is_refused_with_the_reason(source: Path) -> None:
    (source / ".gitignore").write_text("/train.py\n")
    with pytest.raises(JobError, match=r"train\.py is not packed \(\.gitignore\)"):
        pack_source(source / "train.py", source)


def test_folder_of_outputs_is_not_packed(source: Path) -> None:
    (source / "results" / "train-1").mkdir(parents=True)
    (source / "results" / "train-1" / "model.pt").write_text("model")
    package = pack_source(source / "train.py", source, source / "results")
    assert package.left_out == {"results": "outputs of earlier jobs"}
    assert package.names == ("models/net.py", "train.py")


def test_left_out_files_are_listed_by_reason() -> None:
    many = {f"out-{number:02}": ".gitignore" for number in range(12)}
    text = left_out_text({**many, ".env": "may contain a secret"})
    assert text == f".env (may contain a secret); {', '.join(sorted(many)[:10])}, 2 more (.gitignore)"


def test_large_source_names_its_largest_files(source: Path) -> None:
    with (source / "data.bin").open("wb") as data:
        data.truncate((LARGEST_SOURCE_MIB + 1) * 2**20)
    with pytest.raises(JobError) as raised:
        pack_source(source / "train.py", source)
    (problem,) = raised.value.problems
    assert (problem.key, str(problem.got)) == ("--source", f"{source}, 257 MiB")
    assert "--input; the largest files are data.bin (257 MiB)" in problem.fix


@pytest.mark.parametrize("unreadable", ["models", "models/net.py"])
def test_unreadable_file_is_refused_and_not_omitted(
    source: Path, unreadable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make_unreadable(source / unreadable, monkeypatch)
    with pytest.raises(JobError, match=f"{unreadable}'.*\n.*\n.*Permission denied"):
        pack_source(source / "train.py", source)


def _make_unreadable(refused: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the file unreadable for root as well, who ignores file modes and may run the tests."""

    def refusing(original: Any) -> Any:
        def read(path: Any, *arguments: Any) -> Any:
            if Path(path) == refused:
                raise PermissionError(13, "Permission denied", str(path))
            return original(path, *arguments)

        return read

    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    monkeypatch.setattr(Path, "read_bytes", refusing(Path.read_bytes))


def test_unpackable_script_is_refused(source: Path) -> None:
    (source / "venv").mkdir()
    (source / "venv" / "train.py").write_text("")
    with pytest.raises(JobError, match="in this folder are never packed"):
        pack_source(source / "venv" / "train.py", source)


def test_entry_is_valid_for_the_pythons_of_older_images() -> None:
    imported = ast.parse(Path(container_entry_module.__file__).read_text(), feature_version=(3, 9))
    names = {alias.name for node in ast.walk(imported) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(imported) if isinstance(node, ast.ImportFrom)}
    assert names - sys.stdlib_module_names == {"compile_cache_place"}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "s3://b/cache/direct",
            {"NEURON_COMPILE_CACHE_URL": "s3://b/cache/direct/neuronx-cc-2.21.1/trn2-lnc2/xla/world-64"},
        ),
        ("s3://own/cache", {}),
        (None, {}),
    ],
)
def test_entry_separates_compiled_graphs_by_release(
    monkeypatch: pytest.MonkeyPatch, url: str | None, expected: dict[str, str]
) -> None:
    cache = {"url": "s3://b/cache", "instance_type": "trn2.48xlarge", "lnc": 2}
    monkeypatch.setenv("TRN_COMPILE_CACHE", json.dumps(cache))
    monkeypatch.setitem(sys.modules, "compile_cache_place", cache_place)
    monkeypatch.setattr(container_entry_module.metadata, "version", lambda _name: "2.21.1")
    assert container_entry_module.compile_cache(url, processes=64) == expected


@example(script="x" * 80, cluster="c" * 32)
@given(script=st.text(min_size=1, max_size=80), cluster=cluster_names)
def test_job_name_is_valid_and_begins_with_the_cluster(script: str, cluster: str) -> None:
    plan = from_settings(cluster_name=cluster)
    name = job_name(plan, script, datetime(2026, 11, 21, 13, 30, tzinfo=UTC))
    assert re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", name)
    assert len(name) <= 63
    assert name.startswith(f"{cluster}--")
    assert name.endswith("-20261121-133000")


def test_missing_script_is_reported_with_the_nearest(source: Path) -> None:
    with pytest.raises(JobError) as raised:
        pack_source(source / "trian.py", source)
    (problem,) = raised.value.problems
    assert (problem.key, problem.nearest) == ("script", "train.py")


def test_script_outside_the_directory_is_refused(source: Path) -> None:
    with pytest.raises(JobError, match="--source"):
        pack_source(source / "train.py", source / "models")


def test_missing_directory_is_refused(source: Path) -> None:
    with pytest.raises(JobError, match="--source"):
        pack_source(source / "train.py", source / "nothing")
