"""The file of `trn local save`: what it was saved with, and the state, which only the user who saved it can load.

To load a state is to run it. So the file is authenticated with a key that lies in the state folder, for its owner only,
and loaded by nobody else.
"""

import hmac
import json
import os
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trainium_local.environment import Connection, NotTheEmbeddedAwsError, open_private
from trainium_local.lifecycle import LocalError
from trainium_local_plugin import STATE_PATH

KEY = "state.key"
SECONDS = 300.0
_FORMAT = b"trn-local-state"


@dataclass(frozen=True, kw_only=True)
class SavedState:
    """A state whose file was found to be whole, of this version, and saved by this user."""

    content: bytes

    @property
    def port(self) -> int:
        """The port that it was saved at: what is in it has that in its URLs."""
        return urlsplit(self.content.partition(b"\n")[0].decode()).port or 0

    def load(self, connection: Connection) -> None:
        """Put it in place of everything that runs there. Raises LocalError, and then has changed nothing."""
        _request(connection, "PUT", self.content)


def save(file: Path, folder: Path, connection: Connection) -> None:
    """Write all that is there into a file, at once or not at all. Raises LocalError while something is in progress."""
    content = _request(connection, "GET")
    about = json.dumps({**_versions(), "bytes": len(content)}).encode()
    written = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with open(written, "xb", opener=open_private) as output:
            output.write(b"\n".join((_FORMAT, about, _code(folder, about, content), content)))
            output.flush()
            os.fsync(output.fileno())
        written.replace(file)
    except OSError as error:
        written.unlink(missing_ok=True)
        raise LocalError(f"{file} cannot be written ({error.strerror}).") from error


def read(file: Path, folder: Path) -> SavedState:
    """Raises LocalError for a file that is not there, not a state, torn, of other versions, or not of this user."""
    strange = LocalError(f"{file} is no state that `trn local save` has written, or only the beginning of one.")
    try:
        kind, text, code, content = file.read_bytes().split(b"\n", 3)
        about: dict[str, Any] = json.loads(text) if kind == _FORMAT else {}
    except OSError as error:
        raise LocalError(f"{file} cannot be read ({error.strerror}).") from error
    except ValueError:
        raise strange from None
    if not about:
        raise strange
    if len(content) != about.get("bytes"):
        raise LocalError(f"{file} is torn: of {about.get('bytes')} bytes it has {len(content)}.")
    other = list(_other_versions(about))
    if other:
        raise LocalError(f"{file} was saved with {', '.join(other)}. Only the versions that saved a state load it.")
    if not hmac.compare_digest(code, _code(folder, text, content)):
        raise LocalError(
            f"{file} was changed, or saved by somebody else, or with another TRN_LOCAL_HOME. "
            "It is not loaded: to load a state is to run what is in it."
        )
    return SavedState(content=content)


def _request(connection: Connection, method: str, body: bytes = b"") -> bytes:
    try:
        return connection.send(method, STATE_PATH, body, seconds=SECONDS)
    except (ValueError, NotTheEmbeddedAwsError) as error:
        raise LocalError(str(error)) from error


def _versions() -> dict[str, str]:
    own = {name: version(name) for name in ("trainium-cdk", "moto")}
    return own | {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}


def _other_versions(about: dict[str, Any]) -> Iterator[str]:
    for name, here in _versions().items():
        if about.get(name) != here:
            yield f"{name} {about.get(name)} (here {here})"


def _code(folder: Path, about: bytes, content: bytes) -> bytes:
    return hmac.digest(_key(folder), about + b"\n" + content, "sha256").hex().encode()


def _key(folder: Path) -> bytes:
    """The key of the state folder, made when it is first needed."""
    file = folder / KEY
    try:
        with open(file, "xb", opener=open_private) as made:
            made.write(secrets.token_bytes(32))
    except FileExistsError:
        pass
    return file.read_bytes()
