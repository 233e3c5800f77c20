"""examples/serve with a stand-in for vLLM: start, end and failures of the server. No model is served here.

The options and results of `vllm bench serve` were tried with vLLM itself on a CPU: docs/guides/example-serve.md.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.container import free_port
from tests.layout.repository import ROOT

VLLM = """#!{python}
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

here = Path(__file__).parent
arguments = sys.argv[1:]
options = dict(zip(arguments, arguments[1:]))
if arguments[0] == "bench":
    if os.environ.get("FAIL") == "bench":
        sys.exit(3)
    Path(options["--result-dir"], options["--result-filename"]).write_text(json.dumps(options))
    sys.exit()
if os.environ.get("FAIL") == "serve":
    sys.exit(7)
(here / "serve").write_text(json.dumps([os.getpid(), *arguments]))

class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        ready = os.environ.get("FAIL") != "ready" and self.path == "/health"
        self.send_response(200 if ready else 503)
        self.end_headers()

HTTPServer(("127.0.0.1", int(options["--port"])), Health).serve_forever()
"""


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    program.write_text(VLLM.format(python=sys.executable))
    program.chmod(0o755)
    return program


def run_serve(vllm: Path, results: Path, *options: str, fail: str = "") -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{vllm.parent}:{os.environ['PATH']}", "FAIL": fail, "TRN_OUTPUT_DIR": str(results)}
    command = [sys.executable, ROOT / "examples/serve/serve.py", "--model", "m", "--port", free_port(), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=480, check=False)


def is_running(vllm: Path) -> bool:
    (pid, *_) = json.loads((vllm.parent / "serve").read_text())
    return Path(f"/proc/{pid}").exists()


def test_each_concurrency_has_a_result_and_the_server_ends(vllm: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    run = run_serve(vllm, results, "--concurrency", "1", "4", "--", "--tensor-parallel-size", "4")
    assert run.returncode == 0, run.stderr
    assert [line for line in run.stdout.splitlines() if line.startswith("TRN")] == ["TRN step=1", "TRN step=2"]
    loads = [json.loads((results / f"vllm-bench-concurrency-{number}.json").read_text()) for number in (1, 4)]
    assert [load["--max-concurrency"] for load in loads] == ["1", "4"]
    assert json.loads((vllm.parent / "serve").read_text())[-2:] == ["--tensor-parallel-size", "4"]
    assert not is_running(vllm)


@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        ("serve", "vllm serve ended with exit code 7 before it was ready"),
        ("ready", "vllm serve was not ready after 0 minutes"),
        ("bench", "vllm bench serve ended with exit code 3 at concurrency 1"),
    ],
)
def test_failure_is_reported_and_the_server_ends(vllm: Path, tmp_path: Path, fail: str, reason: str) -> None:
    run = run_serve(vllm, tmp_path, "--start-minutes", "0.05", fail=fail)
    assert run.returncode == 1
    assert reason in run.stderr
    if fail != "serve":
        assert not is_running(vllm)
