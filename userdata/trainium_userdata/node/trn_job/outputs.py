"""What a job leaves behind, at the end of each attempt."""

from __future__ import annotations

from pathlib import Path

from .launch import Launch
from .store import Store


def upload(launch: Launch, store: Store, folder: Path) -> None:
    """Every file. One that cannot be stored keeps none of the others from it: raises OSError at the end."""
    part = f"node-{launch.rank}/" if launch.rank else ""
    errors: list[str] = []
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink():
            try:
                store.upload(launch.job_keys.output(f"{part}{file.relative_to(folder)}"), file)
            except OSError as error:
                errors.append(str(error))
    if errors:
        raise OSError("; ".join(errors[:3]))
