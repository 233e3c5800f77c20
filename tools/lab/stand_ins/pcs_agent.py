#!/usr/bin/python3
"""The AWS PCS agent: runs the nodeBootstrapped scripts of the compute node group, then starts slurmd.

/etc/trnlab/pcs.json replaces the answer of RegisterComputeNodeGroupInstance. tools/lab/slurm/cluster.py reads the
result in STATE_FILE.
"""

import base64
import hashlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

SETTINGS = Path("/etc/trnlab/pcs.json")
STATE_FILE = Path("/var/lib/trnlab/agent.json")
BOOTED = Path("/var/lib/trnlab/booted")
LOGS = Path("/var/log/amazon/pcs/lifecycle/actions/nodeBootstrapped")
KEY = Path("/etc/slurm/slurm.key")
SLURMD_OPTIONS = Path("/run/trnlab-slurmd")
STAGE_SECONDS = 1800
METADATA = "http://169.254.169.254/latest"
METADATA_SECONDS = 10
HEADER = "X-aws-ec2-metadata-token"


def report(state: str, reason: str = "") -> None:
    STATE_FILE.write_text(json.dumps({"state": state, "reason": reason, "time": time.time()}))


def metadata(path: str) -> str:
    """A document of the instance metadata service."""
    with urllib.request.urlopen(
        urllib.request.Request(f"{METADATA}/api/token", method="PUT", headers={f"{HEADER}-ttl-seconds": "60"}),
        timeout=METADATA_SECONDS,
    ) as answer:
        token = answer.read().decode()
    with urllib.request.urlopen(
        urllib.request.Request(f"{METADATA}/meta-data/{path}", headers={HEADER: token}), timeout=METADATA_SECONDS
    ) as answer:
        return answer.read().decode()


def download(url: str, file: Path) -> str | None:
    """Download an object from S3 with the credentials of the instance. Returns why it failed, or None."""
    region, roles = metadata("placement/region"), "iam/security-credentials"
    credentials = json.loads(metadata(f"{roles}/{metadata(roles).split()[0]}"))
    words = ["curl", "--silent", "--show-error", "--fail", "--retry", "3", "--output", str(file)]
    words += ["--aws-sigv4", f"aws:amz:{region}:s3", "--user"]
    words += [f"{credentials['AccessKeyId']}:{credentials['SecretAccessKey']}"]
    words += ["--header", f"x-amz-security-token: {credentials['Token']}", url]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else None


def run(script: dict[str, Any], environment: dict[str, str]) -> str | None:
    """Download and run a script. Returns why it failed, or None."""
    LOGS.mkdir(parents=True, exist_ok=True)
    file = STATE_FILE.with_name(script["name"])
    if reason := download(script["url"], file):
        return f"the download failed: {reason}"
    if hashlib.sha256(file.read_bytes()).hexdigest() != script["sha256"]:
        return "the checksum does not match"
    file.chmod(0o700)
    with (LOGS / f"{script['name']}.log").open("ab") as log:
        try:
            code = subprocess.run(
                [str(file), *script["arguments"]],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=STAGE_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return f"no end within {STAGE_SECONDS} seconds"
    if code:
        sys.stderr.write(Path(log.name).read_text(errors="replace")[-2000:])
        return f"exit code {code}"
    return None


def main() -> None:
    settings = json.loads(SETTINGS.read_text())
    STATE_FILE.parent.mkdir(parents=True, exist_ok=True)
    report("starting")
    environment = {**settings["environment"], "PCS_IS_FIRST_BOOT": json.dumps(not BOOTED.exists())}
    BOOTED.touch()
    for script in settings["scripts"]:
        if reason := run(script, environment):
            report("terminate", f"{script['name']}: {reason}")
            sys.exit(f"{script['name']}: {reason}")
    KEY.write_bytes(base64.b64decode(settings["key"]))
    KEY.chmod(0o600)
    # The host's boot time is not the node's, hence -b.
    options = f"-b --conf-server {settings['controller']} -N {settings['node']}"
    SLURMD_OPTIONS.write_text(f"SLURMD_OPTIONS={options}\n")
    subprocess.run(["chown", "slurm:", str(KEY)], check=True)
    subprocess.run(["systemctl", "start", "slurmd.service"], check=True)
    report("ready")


main()
