"""SSH keys for logins between the nodes of a cluster, for MPI and nccom-test, exchanged through S3."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
from pathlib import Path

from trainium_wire.formats import json_value
from trainium_wire.keys import SSH_KEYS_PREFIX, instance_key

from . import files
from .s3 import S3

USER_ID = 1000
"""The image's login user: ubuntu or ec2-user."""

PROGRAMS = "/usr/bin:/bin"
HOST_KEY = "etc/ssh/ssh_host_ed25519_key.pub"
MARK = "# trn-node"


def exchange(s3: S3, folder: str, instance_id: str, nodes: dict[str, str]) -> None:
    """Store this node's public keys, and trust those of the other nodes.

    Args:
        s3: Requests to S3.
        folder: S3 URL of the cluster's folder.
        instance_id: This node.
        nodes: Addresses of all nodes by instance ID.

    Raises:
        LookupError: Another node has not stored its keys yet, or this node has no user USER_ID.
        ValueError: A key is invalid.
        OSError: S3 does not answer or refuses, or a file cannot be read.
        subprocess.CalledProcessError: The user's key cannot be made, or a file of the user cannot be written.
    """
    ssh = files.path(pwd.getpwuid(USER_ID).pw_dir[1:]) / ".ssh"
    if not (ssh / "id_ed25519").exists():
        _as_user(ssh, "mkdir -pm 700 $D; ssh-keygen -qt ed25519 -N '' -f $D/id_ed25519")
    keys = [_key((ssh / "id_ed25519.pub").read_text()), _key(files.read(HOST_KEY))]
    s3.put(instance_key(f"{folder}/{SSH_KEYS_PREFIX}", files.own_name(instance_id)), json.dumps(keys).encode())
    blocks: dict[str, str] = {"authorized_keys": "", "known_hosts": ""}
    for name, address in nodes.items():
        if name == instance_id:
            continue
        stored = s3.get(instance_key(f"{folder}/{SSH_KEYS_PREFIX}", files.own_name(name)))
        if not stored:
            raise LookupError(f"{name} has not stored its keys yet")
        try:
            user, host = map(_key, json_value(stored[0]))
        except ValueError as error:
            raise ValueError(f"{name} has stored an invalid key: {error}") from None
        blocks["authorized_keys"] += f'from="{address}" {user} {MARK}\n'
        blocks["known_hosts"] += f"{address} {host} {MARK}\n"
    for file, block in blocks.items():
        # The user's other entries are kept.
        _as_user(ssh, f"cd $D; umask 77; (grep -sv '{MARK}$' {file}; cat) >{file}~; mv {file}~ {file}", block)


def _as_user(folder: Path, script: str, text: str = "") -> None:
    """Run a script as the user, because root could follow a link in the user's folder."""
    group = pwd.getpwuid(USER_ID).pw_gid
    environment = {"D": str(folder), "PATH": PROGRAMS}
    command = ["sh", "-c", script]
    # Only root can set groups, and only root has groups to drop.
    groups: list[int] | None = None if os.geteuid() else []
    subprocess.run(
        command, input=text, text=True, check=True, user=USER_ID, group=group, extra_groups=groups, env=environment
    )


def _key(text: str) -> str:
    """The key without its comment. Raises ValueError if the text is not an ed25519 public key."""
    match = re.match(r"ssh-ed25519 [\w+/]{60,80}", text)
    if not match:
        raise ValueError("not an ed25519 public key")
    return match[0]
