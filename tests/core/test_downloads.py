"""What a job downloads from the internet, found in its setup and its code."""

from pathlib import Path

import pytest

from trainium_core.jobs.downloads import downloads
from trainium_core.jobs.source_package import pack_source


def found(folder: Path, code: str = "", setup: str | None = None) -> list[str]:
    (folder / "train.py").write_text(code)
    (folder / "weights").mkdir()
    (folder / "weights" / "config.json").write_text("{}")
    return list(downloads(setup, pack_source(Path("train.py"), folder)))


@pytest.mark.parametrize(
    "setup",
    ["pip install einops", "python3 -m pip install -r requirements.txt", "uv pip install trl", "apt-get install git"],
)
def test_setup_that_installs_from_an_index_is_named(tmp_path: Path, setup: str) -> None:
    (text,) = found(tmp_path, setup=f"set -x\n{setup}\n")
    assert text.startswith("setup: ")
    assert setup.endswith(text.removeprefix("setup: "))


@pytest.mark.parametrize(
    "setup", [None, "pip install --no-index --find-links wheels einops", "# pip install einops", "echo done"]
)
def test_setup_without_downloads_is_not_named(tmp_path: Path, setup: str | None) -> None:
    assert found(tmp_path, setup=setup) == []


@pytest.mark.parametrize(
    "call",
    [
        "AutoModel.from_pretrained('gpt2')",
        "AutoModel.from_pretrained('Qwen/Qwen3-0.6B', revision='main')",
        "load_dataset('roneneldan/TinyStories', split='train')",
        "datasets.load_dataset('wikitext', 'wikitext-2-raw-v1')",
        "snapshot_download('Qwen/Qwen3-0.6B')",
        "snapshot_download(repo_id='Qwen/Qwen3-0.6B')",
        "torchvision.datasets.MNIST('data', train=True, download=True)",
        "urllib.request.urlretrieve('https://example.com/a', 'a')",
    ],
)
def test_call_that_downloads_is_named_with_its_line(tmp_path: Path, call: str) -> None:
    assert found(tmp_path, f"import datasets\n\nx = {call}\n") == [f"train.py:3: {call}"]


@pytest.mark.parametrize(
    "call",
    [
        "AutoModel.from_pretrained('weights')",
        "AutoModel.from_pretrained('./elsewhere')",
        "AutoModel.from_pretrained('/opt/models/gpt2')",
        "AutoModel.from_pretrained('gpt2', local_files_only=True)",
        "AutoModel.from_pretrained(args.model)",
        "load_dataset('json', data_files='tokens.json')",
        "torchvision.datasets.MNIST('data', download=False)",
        "model.from_config(config)",
    ],
)
def test_call_that_reads_local_files_or_a_computed_name_is_not_named(tmp_path: Path, call: str) -> None:
    assert found(tmp_path, f"x = {call}\n") == []


def test_file_that_is_not_python_of_this_version_is_passed_over(tmp_path: Path) -> None:
    assert found(tmp_path, "print 'from_pretrained'\n") == []
