"""What `trn support` writes: what there is, also when much cannot be had."""

import io
import json
import tarfile
from datetime import UTC, datetime

from trainium_core.support.archive import MANIFEST, Part, gather, write_archive
from trainium_runtime.errors import UnavailableError


def files_of(archive: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {one.name: stream.read().decode() for one in opened if (stream := opened.extractfile(one))}


def denied() -> str:
    raise UnavailableError("not allowed to read: the permission s3:GetObject is missing")


def broken() -> str:
    raise KeyError("Events of 123456789012")


def test_an_archive_has_what_could_be_had_and_names_the_rest() -> None:
    parts = [
        Part(name="versions.txt", gather=lambda: "Python 3.11\n"),
        Part(name="logs", gather=lambda: {"i-1.log": "waiting\n"}),
        Part(name="records.json", gather=denied),
        Part(name="events.json", gather=broken),
    ]
    archive = write_archive(gather(parts), folder="bundle", made=datetime(2026, 11, 22, tzinfo=UTC))
    files = files_of(archive)
    manifest = json.loads(files.pop(f"bundle/{MANIFEST}"))
    assert files == {"bundle/versions.txt": "Python 3.11\n", "bundle/logs/i-1.log": "waiting\n"}
    assert manifest["unavailable"] == {
        "records.json": "not allowed to read: the permission s3:GetObject is missing",
        "events.json": "KeyError: 'Events of 123456789012'",
    }
