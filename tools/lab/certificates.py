"""A certificate authority for one run of the lab, and one certificate for all of AWS's names."""

from dataclasses import dataclass
from pathlib import Path

from tools.lab.shell import run

DAYS = "2"


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """PEM files.

    Attributes:
        authority_link: The name by which OpenSSL finds the authority in a folder.
    """

    authority: Path
    authority_link: str
    certificate: Path
    key: Path


def make_certificates(folder: Path, names: tuple[str, ...]) -> Certificates:
    """Make an authority, and a certificate from it for these names, which may begin with `*.`."""
    folder.mkdir(parents=True)
    authority, authority_key = folder / "authority.pem", folder / "authority.key"
    certificate, key, request = folder / "server.pem", folder / "server.key", folder / "server.csr"
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    run(
        *("openssl", "req", "-x509", *new_key, "-days", DAYS, "-subj", "/CN=trnlab authority"),
        # Python 3.13 and later require keyUsage.
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", authority_key, "-out", authority),
    )
    run("openssl", "req", *new_key, "-subj", "/CN=trnlab", "-keyout", key, "-out", request)
    extensions = folder / "server.ext"
    alternative_names = ",".join(f"DNS:{name}" for name in names)
    extensions.write_text(f"subjectAltName={alternative_names}\nauthorityKeyIdentifier=keyid\n")
    run(
        *("openssl", "x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority_key, "-CAcreateserial"),
        *("-days", DAYS, "-extfile", extensions, "-out", certificate),
    )
    link = run("openssl", "x509", "-hash", "-noout", "-in", authority).strip() + ".0"
    return Certificates(authority=authority, authority_link=link, certificate=certificate, key=key)
