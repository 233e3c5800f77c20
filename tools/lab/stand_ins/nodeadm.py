#!/usr/bin/python3
"""nodeadm of the EKS-optimized images, as far as it concerns the flags of kubelet.

`nodeadm init --skip run` configures kubelet from the user data, `nodeadm init --skip config` also from
/etc/eks/nodeadm.d, whose flags come last; then it restarts kubelet and waits until it runs (awslabs/amazon-eks-ami at
81fec2e8: nodeadm/cmd/nodeadm/init/init.go, internal/kubelet/{daemon,environment}.go and internal/daemon/systemd.go).
"""

import email
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

METADATA = "http://169.254.169.254/latest"
PART = "application/node.eks.aws"
DROP_INS = Path("/etc/eks/nodeadm.d")
ENVIRONMENT = Path("/etc/eks/kubelet/environment")


def user_data() -> str:
    ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = urllib.request.Request(f"{METADATA}/api/token", headers=ttl, method="PUT")
    with urllib.request.urlopen(token, timeout=30) as response:
        header = {"X-aws-ec2-metadata-token": response.read().decode()}
    with urllib.request.urlopen(urllib.request.Request(f"{METADATA}/user-data", headers=header), timeout=30) as data:
        return data.read().decode()


def configurations(*, with_drop_ins: bool) -> Iterator[str]:
    message = email.message_from_string(user_data())
    yield from (str(part.get_payload()) for part in message.walk() if part.get_content_type() == PART)
    if with_drop_ins:
        yield from (file.read_text() for file in sorted(DROP_INS.glob("*.y*ml")))


def main(skipped: str) -> None:
    texts = configurations(with_drop_ins=skipped == "config")
    flags = [flag for text in texts for flag in re.findall(r"^\s*- (--\S+)$", text, re.MULTILINE)]
    ENVIRONMENT.parent.mkdir(parents=True, exist_ok=True)
    ENVIRONMENT.write_text(f"NODEADM_KUBELET_ARGS={' '.join(flags)}")
    if skipped == "config":
        subprocess.run(["systemctl", "--no-block", "restart", "kubelet.service"], check=True)
        while subprocess.run(["systemctl", "--quiet", "is-active", "kubelet.service"], check=False).returncode:
            time.sleep(0.25)


main(sys.argv[sys.argv.index("--skip") + 1])
