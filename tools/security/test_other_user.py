"""Another user of the machine reaches nothing of the embedded AWS, neither over the network nor in files."""

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
    """What the foreign client says that it could do, as this user or as another."""
    own = [str(target.folder), str(target.pid)] if target.folder else []
    command = [*user, "/usr/bin/python3", "-c", SCRIPT, str(target.port), *own]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/", timeout=120)
    return set(json.loads(ran.stdout))


def test_another_user_does_everything_to_plain_moto() -> None:
    with plain_moto() as target:
        target.prepare()
        assert succeeded(target, *NOBODY) == NETWORK


def test_another_user_does_nothing_to_the_embedded_aws() -> None:
    with embedded_aws() as target:
        target.prepare()
        assert succeeded(target, *NOBODY) == set()
        assert target.harm() == set()


def test_owner_without_the_secret_reaches_files_but_no_api() -> None:
    with embedded_aws() as target:
        target.prepare()
        assert succeeded(target) == FILES
