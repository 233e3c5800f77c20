"""What a job downloads from the internet, as far as its setup and its code show it."""

import ast
import gzip
import io
import re
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from trainium_core.jobs.source_package import SourcePackage

_SETUP = re.compile(
    r"\b(?:pip3? install(?!.*--no-index)|uv (?:pip install|sync|add)|conda install|apt(?:-get)? (?:install|update)"
    r"|dnf install|git clone|wget|curl|hf download|huggingface-cli download)\b.*"
)
_HUB = ("from_pretrained", "load_dataset", "snapshot_download", "hf_hub_download")
_URLS = ("urlretrieve", "download_url", "load_state_dict_from_url")
_LOCAL_DATA = ("data_files", "data_dir")
_WORDS = re.compile(rb"from_pretrained|load_dataset|_download|urlretrieve|download_url|_from_url|download\s*=\s*True")


def downloads(setup: str | None, package: SourcePackage) -> Sequence[str]:
    """The commands of a setup and the calls in packed Python files that download from the internet.

    A call whose name or path is computed is not found, nor is a download inside a library.
    """
    return [*_setup_downloads(setup or ""), *_code_downloads(package)]


def _setup_downloads(setup: str) -> Iterator[str]:
    for line in setup.splitlines():
        if not line.lstrip().startswith("#") and (found := _SETUP.search(line)):
            yield f"setup: {found.group().strip()}"


def _code_downloads(package: SourcePackage) -> Iterator[str]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(package.archive))) as archive:
        for entry in archive:
            reader = archive.extractfile(entry) if entry.name.endswith(".py") else None
            content = reader.read() if reader else b""
            if _WORDS.search(content):
                yield from _calls(entry.name, content, package.names)


def _calls(name: str, content: bytes, packed: Sequence[str]) -> Iterator[str]:
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: call.lineno):
        function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if _downloads(function, call, packed):
            yield f"{name}:{call.lineno}: {ast.unparse(call)}"


def _downloads(function: str, call: ast.Call, packed: Sequence[str]) -> bool:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if _is_true(keywords.get("download")):
        return True
    if function not in _HUB:
        return function in _URLS
    first = call.args[0] if call.args else keywords.get("repo_id")
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return False
    is_local = _is_true(keywords.get("local_files_only")) or any(key in keywords for key in _LOCAL_DATA)
    return not is_local and not _is_packed(first.value, packed)


def _is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _is_packed(path: str, packed: Sequence[str]) -> bool:
    """Whether the text is a path in the source, or a path at all."""
    if path.startswith(("/", ".", "~", "$")):
        return True
    parts = PurePosixPath(path).parts
    return any(PurePosixPath(name).parts[: len(parts)] == parts for name in packed)
