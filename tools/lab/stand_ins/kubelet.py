#!/usr/bin/python3
"""kubelet: registers its Node with the taints of its flags, and runs the pod of the DaemonSet as a process.

/etc/trnlab/eks.json has the address of the API server, the token of each user and the pod. The process sees the file
system of the node: the image of the pod is the Python environment of the node's DLAMI.
"""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

SETTINGS = json.loads(Path("/etc/trnlab/eks.json").read_text())
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
READY = Path("/tmp/trn-verified")


def flag(name: str) -> str:
    """The last value of a flag, which counts."""
    values = re.findall(rf"--{name}=(\S+)", " ".join(sys.argv[1:]))
    return values[-1] if values else ""


def register() -> None:
    """Create the Node. An existing one keeps its taints."""
    taints = [re.fullmatch("(.+)=(.+):(.+)", taint) for taint in filter(None, flag("register-with-taints").split(","))]
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": SETTINGS["node"],
            "labels": dict(label.split("=") for label in filter(None, flag("node-labels").split(","))),
        },
        "spec": {"taints": [{"key": one[1], "value": one[2], "effect": one[3]} for one in taints if one]},
    }
    request = urllib.request.Request(
        f"https://{SETTINGS['host']}:{SETTINGS['port']}/api/v1/nodes",
        json.dumps(node).encode(),
        {"Authorization": f"Bearer {SETTINGS['kubelet_token']}", "Content-Type": "application/json"},
    )
    try:
        urllib.request.urlopen(request, context=ssl.create_default_context(), timeout=30).close()
    except urllib.error.HTTPError as error:
        if error.code != 409:
            raise


def mount(pod: dict[str, Any]) -> None:
    """Check the volumes, which are folders and files of the node at the same paths."""
    mounts = {one["name"]: one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}
    for volume in pod["volumes"]:
        path, kind = Path(volume["hostPath"]["path"]), volume["hostPath"]["type"]
        if not (path.is_file() if kind == "File" else path.is_dir()) or mounts[volume["name"]] != str(path):
            raise OSError(f"hostPath type check failed: {path} is not a {kind} of the node")


def run(pod: dict[str, Any]) -> int:
    container = pod["containers"][0]
    values = {"spec.nodeName": SETTINGS["node"]}
    variables = {
        one["name"]: one["value"] if "value" in one else values[one["valueFrom"]["fieldRef"]["fieldPath"]]
        for one in container["env"]
    }
    SERVICE_ACCOUNT.mkdir(parents=True, exist_ok=True)
    (SERVICE_ACCOUNT / "token").write_text(SETTINGS["pod_token"])
    (SERVICE_ACCOUNT / "ca.crt").write_text(SETTINGS["authority"])
    READY.unlink(missing_ok=True)  # The container has a new file system.
    system = {"KUBERNETES_SERVICE_HOST": SETTINGS["host"], "KUBERNETES_SERVICE_PORT": str(SETTINGS["port"])}
    path = os.pathsep.join((SETTINGS["image"], os.environ["PATH"]))
    process = subprocess.Popen(
        container["command"],
        cwd=container["workingDir"],
        env={"PATH": path, **SETTINGS["environment"], **system, **variables},
    )

    def end(*_: object) -> None:
        process.terminate()

    signal.signal(signal.SIGTERM, end)
    return process.wait()


register()
pod = SETTINGS["pod"]
mount(pod)
while (code := run(pod)) not in (143, -signal.SIGTERM):
    print(f"the container ended with {code}", flush=True)
    time.sleep(1)
