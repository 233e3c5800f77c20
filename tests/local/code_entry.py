"""Entries of a function's code."""

import zipfile


def readable(name: str, mode: int = 0o644) -> zipfile.ZipInfo:
    """An entry of an archive that Lambda's user may read, or with another mode: `writestr` gives a name 0600."""
    entry = zipfile.ZipInfo(name)
    entry.external_attr = mode << 16
    return entry
