"""ZIP entries of a function's code."""

import zipfile


def readable(name: str, mode: int = 0o644) -> zipfile.ZipInfo:
    """An archive entry that Lambda's user may read by default; `writestr` sets mode 0600."""
    entry = zipfile.ZipInfo(name)
    entry.external_attr = mode << 16
    return entry
