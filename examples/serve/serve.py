"""Serve a model with vLLM, and measure it with vLLM's own load generator.

Starts `vllm serve`, waits until the server is ready, runs `vllm bench serve` at each concurrency, and ends the server.
`trn bench` imports the result files. Options of the server follow `--`:

    python serve.py --model Qwen/Qwen3-0.6B --concurrency 1 8 -- --tensor-parallel-size 4 --max-model-len 4096
"""

import argparse
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

POLL_SECONDS = 2
REPORT_SECONDS = 60
END_SECONDS = 60


class ServeError(Exception):
    """The server or the load generator failed. The message is a sentence."""


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a folder, or a name on the Hugging Face Hub")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 8, 32], help="requests at the same time")
    parser.add_argument("--requests", type=int, default=400, help="per concurrency; an interval of p99 needs 368")
    parser.add_argument("--input-tokens", type=int, default=1500)
    parser.add_argument("--output-tokens", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start-minutes", type=float, default=90, help="time limit of the start, with compilation")
    parser.add_argument("--results", type=Path, default=Path(os.environ.get("TRN_OUTPUT_DIR", "results")))
    parser.add_argument("server", nargs="*", help="options of `vllm serve`, after --")
    return parser.parse_args()


def wait_until_ready(server: subprocess.Popen[bytes], port: int, seconds: float) -> float:
    """Wait until the server is ready, and return the seconds that it took.

    Raises:
        ServeError: The server ended, or was not ready in time.
    """
    start = time.monotonic()
    reported = start
    while True:
        if server.poll() is not None:
            code = server.returncode
            raise ServeError(f"vllm serve ended with exit code {code} before it was ready; see its output.")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as response:
                if response.status == 200:
                    return time.monotonic() - start
        except (urllib.error.URLError, OSError):
            pass
        now = time.monotonic()
        if now - start > seconds:
            raise ServeError(f"vllm serve was not ready after {seconds / 60:.0f} minutes.")
        if now - reported > REPORT_SECONDS:
            reported = now
            print(f"the server is not ready after {(now - start) / 60:.0f} minutes; waiting", flush=True)
        time.sleep(POLL_SECONDS)


def measure(options: argparse.Namespace, concurrency: int) -> None:
    """Run `vllm bench serve` at one concurrency, after warm-up requests.

    Raises:
        ServeError: The load generator failed, or wrote no result file.
    """
    file = f"vllm-bench-concurrency-{concurrency}.json"
    arguments = {
        "--backend": "openai",
        "--base-url": f"http://127.0.0.1:{options.port}",
        "--model": options.model,
        "--dataset-name": "random",
        "--random-input-len": options.input_tokens,
        "--random-output-len": options.output_tokens,
        "--num-prompts": options.requests,
        "--num-warmups": concurrency,
        "--max-concurrency": concurrency,
        "--seed": options.seed,
        "--percentile-metrics": "ttft,tpot,itl,e2el",
        "--metric-percentiles": "50,95,99",
        "--result-dir": options.results,
        "--result-filename": file,
    }
    command = ["vllm", "bench", "serve", "--ignore-eos", "--disable-tqdm", "--save-result", "--save-detailed"]
    completed = subprocess.run([*command, *(str(part) for pair in arguments.items() for part in pair)], check=False)
    if completed.returncode != 0:
        code = completed.returncode
        raise ServeError(f"vllm bench serve ended with exit code {code} at concurrency {concurrency}; see its output.")
    if not (options.results / file).is_file():
        raise ServeError(f"vllm bench serve wrote no {options.results / file}; see its output.")


def main() -> int:
    options = read_options()
    options.results.mkdir(parents=True, exist_ok=True)
    print(f"starting vllm serve {options.model}", flush=True)
    command = ["vllm", "serve", options.model, "--port", str(options.port), "--disable-uvicorn-access-log"]
    server = subprocess.Popen([*command, *options.server], start_new_session=True)
    try:
        seconds = wait_until_ready(server, options.port, options.start_minutes * 60)
        print(f"ready after {seconds:.0f} seconds", flush=True)
        for number, concurrency in enumerate(options.concurrency, start=1):
            measure(options, concurrency)
            print(f"TRN step={number}", flush=True)
    except ServeError as error:
        print(f"serve.py: {error}", file=sys.stderr)
        return 1
    finally:
        end(server)
    return 0


def end(server: subprocess.Popen[bytes]) -> None:
    """End the server and its workers, unless the server has already ended."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if server.poll() is None:
            os.killpg(server.pid, number)
            try:
                server.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                continue


if __name__ == "__main__":
    sys.exit(main())
