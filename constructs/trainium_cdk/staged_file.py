"""Files that a deployment puts into the CDK's bucket.

Not aws_s3_assets.Asset: that loads what it might bundle with, copies what was written for it, and reads the copy again
for its fingerprint, which was a tenth of what a fleet adds to a synthesis.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePath
from tempfile import mkdtemp

from aws_cdk import FileAssetPackaging, Stack, Stage


@dataclass(frozen=True, kw_only=True)
class StagedFile:
    """Where in S3 a file is once its stack is deployed."""

    bucket_name: str
    key: str
    url: str
    arn: str


def stage_text(stack: Stack, name: str, text: str, *, suffix: str) -> StagedFile:
    """Stage a text file. name: what the CDK CLI calls it when it uploads it. suffix: such as `.sh`."""
    content = text.encode()
    staged = Path(_stage(stack).asset_outdir) / f"asset.{sha256(content).hexdigest()}{suffix}"
    if not staged.exists():
        staged.write_bytes(content)
    return _added(stack, name, staged, FileAssetPackaging.FILE)


def stage_archive(stack: Stack, name: str, files: Mapping[PurePath, Path]) -> StagedFile:
    """Stage files as an archive, which the CDK CLI makes of a folder.

    name: what it calls the archive when it uploads it. files: by their places in the archive.
    """
    digest = sha256()
    for place, file in sorted(files.items()):
        content = file.read_bytes()
        digest.update(f"{place.as_posix()} {len(content)}\n".encode() + content)
    staged = Path(_stage(stack).asset_outdir) / f"asset.{digest.hexdigest()}"
    if not staged.exists():
        # Under its name only when it is whole: whoever finds it there takes it as it is.
        part = Path(mkdtemp(dir=staged.parent, prefix="part."))
        for place, file in files.items():
            (part / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, part / place)
        part.chmod(0o755)
        part.rename(staged)
    return _added(stack, name, staged, FileAssetPackaging.ZIP_DIRECTORY)


def _added(stack: Stack, name: str, staged: Path, packaging: FileAssetPackaging) -> StagedFile:
    location = stack.synthesizer.add_file_asset(
        source_hash=staged.name.removeprefix("asset.").partition(".")[0],
        # As the manifest of a Stage has it, which is in a folder of its own.
        file_name=os.path.relpath(staged, _stage(stack).outdir),
        packaging=packaging,
        display_name=name,
    )
    bucket, key = location.bucket_name, location.object_key
    return StagedFile(
        bucket_name=bucket, key=key, url=location.s3_object_url, arn=f"arn:{stack.partition}:s3:::{bucket}/{key}"
    )


def _stage(stack: Stack) -> Stage:
    """Where the stack's manifest is, and the files of all Stages of the app."""
    stage = Stage.of(stack)
    assert stage is not None, "the CDK makes an App for a stack without one"
    return stage
