"""`make demo` for a user with AWS settings, a profile and proxies, which must have no effect."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.constructs.synth import ROOT


@dataclass(frozen=True, kw_only=True)
class Demo:
    """The result of one run.

    Attributes:
        left: Names of the files and folders trn-* that the run left in the temporary folder.
        leaks: The number of connections to the trap.
        wrote_beside_the_app: Whether the CDK CLI wrote files into the repository.
    """

    code: int
    output: str
    left: list[str]
    leaks: int
    wrote_beside_the_app: bool


@pytest.fixture(scope="module")
def trap() -> Iterator[tuple[str, list[str]]]:
    """An address that must receive no connection, and the peers that connected to it."""
    caught: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                connection, peer = listener.accept()
            except OSError:
                return
            caught.append(str(peer))
            connection.close()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", caught
    listener.close()


def files_of_the_cdk() -> dict[str, int | None]:
    """The modification times of the files that the CDK CLI writes beside an app."""
    places = (ROOT / "cdk.out" / "manifest.json", ROOT / "cdk.context.json")
    return {place.name: place.stat().st_mtime_ns if place.exists() else None for place in places}


@pytest.fixture(scope="module")
def demo(trap: tuple[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Demo:
    elsewhere, caught = trap
    home, temporary = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("tmp")
    (home / ".aws").mkdir()
    (home / ".aws" / "config").write_text(f"[default]\nregion = eu-west-1\nendpoint_url = {elsewhere}\n")
    (home / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = AKIAREAL\naws_secret_access_key = real\n"
    )
    (home / ".cdk.json").write_text(f'{{"proxy": "{elsewhere}", "profile": "production"}}')
    package_cache = Path.home() / ".cache" / "aws" / "jsii" / "package-cache"
    hostile = {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "AWS_PROFILE": "production",
        "AWS_ENDPOINT_URL": elsewhere,
        "AWS_ENDPOINT_URL_S3": elsewhere,
        "AWS_ENDPOINT_URL_CLOUDFORMATION": elsewhere,
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
        "CDK_PROXY": elsewhere,
        "HTTP_PROXY": elsewhere,
        "HTTPS_PROXY": elsewhere,
        "ALL_PROXY": elsewhere,
        "http_proxy": elsewhere,
        "COLUMNS": "120",  # As in a pipe; GNU readline, which pytest imports, gives 80 to the workers of pytest-xdist.
        # So that the CDK is not unpacked once more.
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(package_cache),
    }
    before = files_of_the_cdk()
    command = [sys.executable, "-m", "tools.demo"]
    run = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | hostile,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1800,
    )
    return Demo(
        code=run.returncode,
        output=run.stdout,
        left=[path.name for path in temporary.iterdir() if path.name.startswith("trn-")],
        leaks=len(caught),
        wrote_beside_the_app=files_of_the_cdk() != before,
    )


def test_demo_succeeds(demo: Demo) -> None:
    assert demo.code == 0, demo.output


def test_demo_uses_no_endpoint_or_proxy_of_the_user(demo: Demo) -> None:
    assert demo.leaks == 0


def test_steps_are_numbered_in_order(demo: Demo) -> None:
    steps = re.findall(r"^(\d)\. (\w+)", demo.output, re.MULTILINE)
    verbs = ["Start", "Preflight", "Bootstrap", "Deploy", "Look", "Run", "Destroy", "Prove"]
    assert steps == [(str(number), verb) for number, verb in enumerate(verbs, start=1)]


def test_commands_are_shown_as_a_user_types_them(demo: Demo) -> None:
    commands = ("trn preflight", "cdk deploy TrnClusterStack", "trn run tools/demo/job/job.toml", "trn audit")
    assert [command for command in commands if f"\n$ {command}\n" not in demo.output] == []


def test_audit_after_the_demo_finds_nothing_left(demo: Demo) -> None:
    assert re.search(
        r"\n\$ trn audit\nnothing left of trn-pilot in us-west-2; kinds of resources listed: \d+\n", demo.output
    )


DIFFERING = {
    r"\bi-[0-9a-f]{17}\b": "INSTANCE",
    r"\bfit-\d{8}-\d{6}\b": "JOB",
    r"(PlacementGroup\w+)-\w+": r"\1-ID",
    r"\b\d+(\.\d+)? ?s\b": "SECONDS",
    r"(done, last: \w+) \S+": r"\1 SOMETHING",
    r"packed \d+ bytes": "packed BYTES",
    r"(S3 objects +\d+ +\d+) +\d+": r"\1 AS_MANY_AS_NODES_HAVE_WRITTEN",
}
"""What differs between two runs: IDs, times, the order of creation, the compressed size and the number of objects."""


def lines_in_common(text: str) -> list[str]:
    for pattern, name in DIFFERING.items():
        text = re.sub(pattern, name, text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_page_shows_the_real_output(demo: Demo) -> None:
    """Compares lines, because the order of the lines of a job and the lines about the job differs between runs."""
    (shown,) = re.findall(r"^```\n\$ make demo\n(.*?)^```", (ROOT / "docs/start/demo.md").read_text(), re.M | re.S)
    printed = lines_in_common(demo.output)
    assert [line for line in lines_in_common(shown.replace("[...]\n", "")) if line not in printed] == []


def test_last_line_has_result_and_duration(demo: Demo) -> None:
    last = demo.output.rstrip().splitlines()[-1]
    assert re.fullmatch(r"make demo: TrnClusterStack \(\d+ resources, .*\) was .* with nothing left, in \d+ s", last)


def test_demo_leaves_no_temporary_files(demo: Demo) -> None:
    assert demo.left == []


def test_demo_writes_no_assembly_or_context_into_the_repository(demo: Demo) -> None:
    assert not demo.wrote_beside_the_app
