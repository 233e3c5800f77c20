"""CPU time of the program that samples the devices of a node, and its effect on processes that use all CPUs.

The node program is the real one. A stand-in for neuron-monitor prints the documented report, with the devices and
processes of a trn2.48xlarge. The program takes a sample every second instead of every minute.
"""

import copy
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tools.demo.private_aws import PrivateAws

DOCUMENTED = Path(__file__).parents[2] / "tests/userdata/data/neuron_monitor.json"
DEVICES, CORES = 16, 64
PERIOD = 1
ROUNDS, SECONDS = 8, 3
STEP = bytes(2**24)

MONITOR = """\
#!/bin/sh
while sleep {period}; do cat {report} || exit; done
"""
SAMPLER = """
import json, resource, sys, time
from trn_node import device_readings, usage

class Objects:
    def put(self, url, content):
        pass

device_readings.SECONDS = usage.SECONDS = {period}
sampled = usage.Usage(Objects())
sampled.metrics.start()
taken = 0
for line in sys.stdin:  # each line asks how much CPU time was used, and for how many samples
    until = time.monotonic() + float(line)
    while time.monotonic() < until:
        time.sleep({period})
        sampled.poll("", "job-1", time.time(), attempt=1)
    spent = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps(spent.ru_utime + spent.ru_stime), flush=True)
"""


def sampler_speed(aws: PrivateAws) -> Iterator[tuple[str, str]]:
    """Hash with as many processes as there are CPUs, alternately beside the sampler and alone."""
    folder = aws.folder / "sampler"
    _write_node(folder)
    beside, alone, cpu = list[float](), list[float](), list[float]()
    for number in range(2 * ROUNDS):
        # In pairs of both orders, so that other load affects both.
        if number % 4 in (0, 3):
            steps, spent = _steps_beside_the_sampler(folder)
            beside.append(steps)
            cpu.append(spent)
        else:
            alone.append(_step_seconds())
    ratios = [one / other for one, other in zip(beside, alone, strict=True)]
    sample = median(cpu)
    yield (
        f"CPU time of one sample of {DEVICES} devices and {CORES} cores, without neuron-monitor",
        f"{1000 * sample:.1f} ms, {100 * sample / 60:.4f}% of one CPU with a sample a minute, median of {ROUNDS}",
    )
    low, high = sorted(ratios)[1], sorted(ratios)[-2]
    yield (
        f"a step beside the sampler with a sample every {PERIOD} s, relative to a step without it",
        f"{median(ratios):.3f}, from {low:.3f} to {high:.3f} without the lowest and the highest of {ROUNDS} pairs",
    )


def _write_node(folder: Path) -> None:
    """Write the files and the stand-in of a node."""
    report: Any = json.loads(DOCUMENTED.read_text())["report"]
    (runtime,) = report["neuron_runtime_data"]
    cores = runtime["report"]["neuroncore_counters"]["neuroncores_in_use"]
    runtimes = [copy.deepcopy(runtime) for _ in range(CORES)]
    for core, process in enumerate(runtimes):
        process["report"]["neuroncore_counters"]["neuroncores_in_use"] = {str(core): cores["0"]}
    (device,) = report["system_data"]["neuron_hw_counters"]["neuron_devices"]
    report["neuron_runtime_data"] = runtimes
    devices = [{**device, "neuron_device_index": number} for number in range(DEVICES)]
    report["system_data"]["neuron_hw_counters"]["neuron_devices"] = devices
    files = {"report": json.dumps(report) + "\n", "etc/trn/plan.json": json.dumps({"neuron_cores": CORES})}
    for number in range(DEVICES):
        counters = f"sys/devices/virtual/neuron_device/neuron{number}/stats/hardware"
        files |= {f"{counters}/{name}": "0\n" for name in ("mem_ecc_uncorrected", "sram_ecc_uncorrected")}
        efa = f"sys/class/infiniband/rdmap{number}/ports/1/hw_counters"
        files |= {f"{efa}/{name}": "0\n" for name in ("tx_bytes", "rx_bytes", "retrans_pkts")}
    files["neuron-monitor"] = MONITOR.format(period=PERIOD, report=folder / "report")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "neuron-monitor").chmod(0o755)


def _steps_beside_the_sampler(folder: Path) -> tuple[float, float]:
    """The seconds of a step, and the CPU seconds of a sample."""
    root = Path(__file__).parents[2]
    path = f"{root / 'userdata/trainium_userdata/node'}:{root / 'src'}"
    environment = {"ROOT": str(folder), "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": path}
    command = [sys.executable, "-c", SAMPLER.format(period=PERIOD)]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as sampler:
        assert sampler.stdin
        assert sampler.stdout
        before = _ask(sampler, 2 * PERIOD)
        sampler.stdin.write(f"{SECONDS}\n")
        sampler.stdin.flush()
        steps = _step_seconds()
        after = float(sampler.stdout.readline())
        sampler.terminate()  # neuron-monitor ends once it can no longer write
    return steps, (after - before) / (SECONDS / PERIOD)


def _ask(sampler: "subprocess.Popen[str]", seconds: float) -> float:
    assert sampler.stdin
    assert sampler.stdout
    sampler.stdin.write(f"{seconds}\n")
    sampler.stdin.flush()
    return float(sampler.stdout.readline())


def _step_seconds() -> float:
    """The median duration of a step in as many processes as there are CPUs."""
    command = [sys.executable, "-m", __name__, str(SECONDS)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(os.cpu_count() or 1)]
    return median(float(line) for process in running for line in process.communicate()[0].split())


def _hash(seconds: float) -> Sequence[float]:
    """The durations of steps, each of which hashes the same bytes."""
    until, found = time.monotonic() + seconds, list[float]()
    while time.monotonic() < until:
        started = time.perf_counter()
        hashlib.sha256(STEP).digest()
        found.append(time.perf_counter() - started)
    return found


if __name__ == "__main__":
    print(*_hash(float(sys.argv[1])))
