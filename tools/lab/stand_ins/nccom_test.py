#!/usr/bin/python3
"""nccom-test with the options that a node uses: an all-reduce of one size, compared with the CPU's result.

Before release 2.28, --check is a flag; since then, it takes an optional value (AWS Neuron SDK documentation,
nccom-test.rst at 2.27.0 and 2.28.0).
"""

import argparse
import json
from pathlib import Path

from node_hardware import description, devices_present, is_driver_loaded

BUS_BANDWIDTH = 91.2
MICROSECONDS = 22.3

parser = argparse.ArgumentParser(prog="nccom-test")
parser.add_argument("-r", type=int, required=True, dest="ranks")
for option in ("-b", "-e", "-d", "-n", "-w", "--report-to-json-file"):
    parser.add_argument(option)
hardware = description()
if [int(number) for number in hardware["neuron_release"].split(".")] < [2, 28]:
    parser.add_argument("-c", "--check", action="store_true")
else:
    parser.add_argument("-c", "--check", nargs="?", const="random", choices=["random", "all_ones"])
parser.add_argument("--non-interactive", action="store_true")
parser.add_argument("operation", choices=["allr"])
options = parser.parse_args()

cores = len(devices_present(hardware)) * (hardware["neuron_cores_per_device"] // hardware["logical_neuroncore_config"])
if not is_driver_loaded() or options.ranks > cores:
    parser.exit(1, f"nccom-test: {options.ranks} ranks need as many NeuronCores, found {cores}\n")
if hardware["wrong_collectives"]:
    parser.exit(1, "1 errors found - test failed\n")
size = int(options.e)
print("size(B)    count(elems)    type    time:avg(us)    algbw(GB/s)    busbw(GB/s)")
print(f"{size}    {size // 4}    fp32    {MICROSECONDS}    {BUS_BANDWIDTH / 2}    {BUS_BANDWIDTH}")
if options.report_to_json_file:
    result = {"size(B)": size, "type": "fp32", "time:avg(us)": MICROSECONDS, "busbw(GB/s)": BUS_BANDWIDTH}
    Path(options.report_to_json_file).write_text(json.dumps({"results": [result]}))
