#!/usr/bin/python3
"""torchrun with static ranks, only for the all-reduce of `trn-node internode`: the nodes of a group really connect.

Rank 0 listens on the given port. The EFA state of the nodes decides whether numbers arrive.
"""

import argparse
import json
import socket
from pathlib import Path

from node_hardware import description

SECONDS = 60
BANDWIDTH = 88.0

parser = argparse.ArgumentParser(prog="torchrun")
for option in ("--nnodes", "--nproc_per_node", "--node_rank", "--master_port"):
    parser.add_argument(option, type=int, required=True)
parser.add_argument("--master_addr", required=True)
parser.add_argument("script", type=Path)
parser.add_argument("stack", choices=["xla", "native"])
options = parser.parse_args()

if options.script.name != "all_reduce.py":
    parser.exit(2, f"torchrun: this stand-in does not run {options.script}\n")
own = b"1" if description()["efa_traffic"] or options.nnodes == 1 else b"0"
if options.node_rank == 0:
    with socket.create_server(("", options.master_port)) as server:
        server.settimeout(SECONDS)
        others = [server.accept()[0] for _ in range(options.nnodes - 1)]
        received = min([own, *(other.recv(1) for other in others)])
        for other in others:
            other.sendall(received)
            other.close()
else:
    while True:
        try:
            head = socket.create_connection((options.master_addr, options.master_port), SECONDS)
            break
        except ConnectionRefusedError:
            continue
    with head:
        head.sendall(own)
        received = head.recv(1)
if received != b"1":
    parser.exit(1, "nrt_execute: NRT_TIMEOUT: no data from a peer\n")
for _ in range(options.nproc_per_node):
    print("TRN-ALL-REDUCE " + json.dumps(""))
print(f"TRN-BANDWIDTH {BANDWIDTH}")
