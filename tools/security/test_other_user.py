"""Another user of the machine has no access to the embedded AWS: not to its API, its files or its process."""

import json
import subprocess
from pathlib import Path

from tools.security.targets import Target, embedded_aws, plain_moto

SCRIPT = Path(__file__).with_name("foreign_client.py").read_text()
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
NETWORK = {"identity", "create", "object", "data", "reset"}
FILES = {
    *("list the state", "read the secret", "read the log", "write the state"),
    *("read the memory", "read the environment", "see its files", "signal it"),
}


def succeeded(target: Target, *user: str) -> set[str]:
    """The attacks that the foreign client reports as successful.

    Args:
        user: The command prefix that runs the client as another user. Default: as this user.
    """
    own = [str(target.folder), str(target.pid)] if target.folder else []
    command = [*user, "/usr/bin/python3", "-c", SCRIPT, str(target.port), *own]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/", timeout=120)
    return set(json.loads(ran.stdout))


def test_other_user_has_full_access_to_plain_moto() -> None:
    with plain_moto() as target:
        target.prepare()
        assert succeeded(target, *NOBODY) == NETWORK


def test_other_user_has_no_access_to_embedded_aws() -> None:
    with embedded_aws() as target:
        target.prepare()
        assert succeeded(target, *NOBODY) == set()
        assert target.harm() == set()


def test_owner_without_secret_has_files_but_no_api() -> None:
    with embedded_aws() as target:
        target.prepare()
        assert succeeded(target) == FILES
