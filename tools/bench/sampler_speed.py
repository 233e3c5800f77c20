"""CPU time of the program that samples the devices of a node, and its effect on processes that use all CPUs.

The node program is the real one. A stand-in for neuron-monitor prints the documented report, with the devices and
processes of a trn2.48xlarge, 600 times as often as on a node, so that the effect can be measured.
"""

import copy
import json
import os
import signal
import subprocess
import sys
import time
from bisect import bisect
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

from tools.demo.private_aws import PrivateAws

ROOT = Path(__file__).parents[2]
DOCUMENTED = ROOT / "tests/userdata/data/neuron_monitor.json"
DEVICES, CORES = 16, 64
PERIOD, PERIOD_OF_NODES = 0.1, 60
PAIRS, SECONDS = 30, 1

MONITOR = """\
#!/bin/sh
while sleep {period}; do cat {report} || exit; done
"""
SAMPLER = """
import resource, signal, sys, time
from trn_node import device_readings, usage

class Objects:
    def put(self, url, content):
        pass

def end(*_):
    spent = resource.getrusage(resource.RUSAGE_SELF)
    print(spent.ru_utime + spent.ru_stime - began, taken, flush=True)
    sys.exit()

def add(reading, at, into=usage.Metrics.add):
    global taken
    taken += 1
    into(sampled.metrics, reading, at)

device_readings.SECONDS = usage.SECONDS = {period}
sampled, taken = usage.Usage(Objects()), 0
sampled.metrics.add = add
signal.signal(signal.SIGTERM, end)
began = time.process_time()
sampled.metrics.start()
while True:
    time.sleep({period})
    sampled.poll("", "job-1", time.time(), attempt=1)
"""
STEPS = """
import hashlib, signal, sys, time

def end(*_):
    for start, end in zip(times, times[1:]):
        print(start, end - start)
    sys.exit()

times, content = [], bytes(2**22)
signal.signal(signal.SIGTERM, end)
while True:
    times.append(time.monotonic())
    hashlib.sha256(content).digest()
"""
"""Prints the start and the duration of each step, which hashes the same bytes."""


def sampler_speed(aws: PrivateAws) -> Iterator[tuple[str, str]]:
    """Hash with as many processes as there are CPUs, while the sampler runs in every other second."""
    folder = aws.folder / "sampler"
    _write_node(folder)
    path = f"{ROOT / 'userdata/trainium_userdata/node'}:{ROOT / 'src'}"
    environment = {"ROOT": str(folder), "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": path}
    sampler = subprocess.Popen(
        [sys.executable, "-c", SAMPLER.format(period=PERIOD)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    command = [sys.executable, "-c", STEPS]
    steps = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(os.cpu_count() or 1)]
    time.sleep(1)
    blocks: list[tuple[float, bool]] = []
    for number in range(2 * PAIRS):
        is_on = number % 4 in (0, 3)
        os.killpg(sampler.pid, signal.SIGCONT if is_on else signal.SIGSTOP)
        blocks.append((time.monotonic(), is_on))
        time.sleep(SECONDS)
    os.killpg(sampler.pid, signal.SIGCONT)
    for process in (sampler, *steps):
        process.terminate()
    cpu, taken = map(float, sampler.communicate()[0].split())
    ratios = _ratios(blocks, [line.split() for one in steps for line in one.communicate()[0].splitlines()])
    milliseconds = 1000 * cpu / taken
    yield (
        f"CPU time of a node's sample of {DEVICES} devices and {CORES} cores, without neuron-monitor",
        f"{milliseconds:.1f} ms, {milliseconds / 10 / PERIOD_OF_NODES:.4f}% of one CPU with a sample a minute; "
        f"{taken:.0f} samples",
    )
    low, _, high = quantiles(ratios, n=4)
    yield (
        f"a step while {PERIOD_OF_NODES / PERIOD:.0f} times as many samples are taken, relative to one without samples",
        f"{median(ratios):.3f}, quartiles {low:.3f} and {high:.3f} of {len(ratios)} pairs of adjacent seconds",
    )


def _ratios(blocks: Sequence[tuple[float, bool]], steps: Sequence[Sequence[str]]) -> Sequence[float]:
    """The mean step with the sampler relative to that without it, of each two adjacent blocks.

    Args:
        blocks: The start of each block, and whether the sampler ran.
        steps: The start and the duration of each step.
    """
    starts = [start for start, _ in blocks]
    durations: list[list[float]] = [[] for _ in blocks]
    for start, duration in steps:
        number = bisect(starts, float(start)) - 1
        if number >= 0:
            durations[number].append(float(duration))
    pairs = zip(range(0, len(blocks), 2), range(1, len(blocks), 2), strict=True)
    with_and_without = [(one, two) if blocks[one][1] else (two, one) for one, two in pairs]
    return [fmean(durations[on]) / fmean(durations[off]) for on, off in with_and_without]


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
