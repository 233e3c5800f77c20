"""Keys for signing packages and archives, for one run of the lab."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.lab.shell import run

LONG_AGO = "20200101T000000"
ONE_DAY = "1d"


@dataclass(frozen=True, kw_only=True)
class SigningKey:
    """A GnuPG key.

    Attributes:
        home: Folder of its keyring.
        expired: Whether the key has expired. If so, its signatures have an earlier date.
    """

    home: Path
    expired: bool = False

    @property
    def public(self) -> bytes:
        return self._gpg("--armor", "--export")

    @property
    def fingerprint(self) -> str:
        lines = self._gpg("--with-colons", "--list-keys").decode().splitlines()
        return next(line.split(":")[9] for line in lines if line.startswith("fpr:"))

    def clear_sign(self, text: Path, signed: Path) -> None:
        """Write the text with its signature, in the format that apt expects of InRelease."""
        self._gpg("--yes", "--clearsign", "--output", str(signed), str(text))

    def detach_sign(self, file: Path) -> None:
        """Write the signature next to the file, under its name with .sig added."""
        self._gpg("--yes", "--detach-sign", "--output", f"{file}.sig", str(file))

    def _gpg(self, *arguments: str) -> bytes:
        time_options = ("--faked-system-time", f"{LONG_AGO}!") if self.expired else ()
        return subprocess.run(
            ["gpg", "--homedir", str(self.home), "--batch", "--quiet", *time_options, *arguments],
            check=True,
            capture_output=True,
        ).stdout


def make_key(home: Path, owner: str, *, expired: bool = False) -> SigningKey:
    """Make a key in a new folder."""
    home.mkdir(parents=True, mode=0o700)
    moment = ("--faked-system-time", f"{LONG_AGO}!") if expired else ()
    run(
        *("gpg", "--homedir", home, "--batch", "--quiet", *moment, "--passphrase", ""),
        *("--quick-gen-key", f"{owner} <trnlab@example.invalid>", "rsa3072", "sign", ONE_DAY if expired else "never"),
        environment=dict(os.environ),
    )
    return SigningKey(home=home, expired=expired)
