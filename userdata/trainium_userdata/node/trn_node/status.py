"""`trn-node status`: the identity and state of this node, for people and programs."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from . import files, record


def facts() -> dict[str, Any]:
    lines = (line.removeprefix("export ").split("=", 1) for line in files.read("etc/trn/cluster").splitlines())
    try:
        notice = json.loads(files.read("run/trn/notice.json"))
    except ValueError:
        notice = None
    try:
        plan = files.plan()
    except (OSError, ValueError):
        plan = {}
    return {
        "program_version": program_version(),
        "cluster_name": plan.get("cluster_name"),
        "instance_type": plan.get("instance_type"),
        "record": record.read(),
        "uptime_seconds": int(float((files.read("proc/uptime").split() or ["0"])[0])),
        "cluster": {line[0]: line[1].strip("\"'") for line in lines if len(line) == 2},
        "notice": notice,
    }


def program_version() -> str:
    """The beginning of the SHA-256 of the program's files."""
    digest = sha256()
    folder = Path(__file__).parents[1]
    for file in sorted(folder.glob("*/*.py")):
        digest.update(f"{file.relative_to(folder)} ".encode() + sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


def table(found: dict[str, Any]) -> str:
    made = found["record"]
    if made is None:
        return "No record yet: this node has not been verified. See /var/log/trn-node.log"
    minutes = found["uptime_seconds"] // 60
    kind = f"{found['instance_type']} of {found['cluster_name']}" if found["instance_type"] else "without a plan"
    lines = [
        f"{made['instance_id']} ({made['address']}), {kind}",
        f"{made['state']} at {made['time']}, up {minutes // 60} h {minutes % 60} min",
    ]
    lines += [made["reason"]] if made["reason"] else []
    cluster = found["cluster"]
    if "TRN_NODE_RANK" in cluster:
        rank, nodes = cluster["TRN_NODE_RANK"], cluster.get("TRN_NODES")
        lines.append(f"rank {rank} of {nodes} nodes, head node {cluster.get('HEAD_NODE')}")
    if found["notice"]:
        lines.append(f"NOTICE: {found['notice'].get('reason')}, at {found['notice'].get('at') or 'any moment'}")
    rows = [("", "check", "expected", "found")]
    rows += [(mark(c), c["name"], c["expected"], c.get("warning") or c["found"]) for c in made["checks"]]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines += ["", *("  ".join([*map(str.ljust, row[:3], widths), row[3]]) for row in rows)]
    return "\n".join(lines)


def mark(check: dict[str, Any]) -> str:
    return "WRONG" if not check["ok"] else "WARN" if check.get("warning") else "ok"
