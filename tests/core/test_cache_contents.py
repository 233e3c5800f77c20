"""The content of a compile cache in S3, and the entries that `trn cache clean` selects."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainium_core.compile_cache.contents import FINISHED, CachedObject, cache_contents, to_clean
from trainium_core.compile_cache.location import CacheLocation, cache_location

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
DIRECT = "neuronxcc-2.21.2+a1/MODULE_7+d41"


def packed(release: str, hours_ago: float) -> CachedObject:
    key = f"{release}/trn2-lnc2/native/world-64/ab/cd/0.neff.tar"
    return CachedObject(key=key, size=4, modified=NOON - timedelta(hours=hours_ago))


@pytest.mark.parametrize(
    ("files", "state"),
    [
        (["model.hlo_module.pb", "model.neff", "model.done"], FINISHED),
        (["model.hlo_module.pb", "model.hlo_module.pb.lock"], "locked"),
        (["model.hlo_module.pb", "model.log"], "failed"),
        (["model.hlo_module.pb", "model.neff"], "incomplete"),
    ],
)
@pytest.mark.parametrize("above", ["", "direct/neuronx-cc-2.21.2-a1/trn2-lnc2/xla/world-64/"])
def test_state_of_an_xla_entry_follows_from_its_files(above: str, files: list[str], state: str) -> None:
    objects = [CachedObject(key=f"{above}{DIRECT}/{file}", size=1, modified=NOON) for file in files]
    (entry,) = cache_contents(objects).entries
    assert (entry.state, entry.path, entry.release) == (state, f"{above}{DIRECT}", "neuronx-cc-2.21.2-a1")


@pytest.mark.parametrize(
    ("conditions", "chosen"),
    [
        ({"of_releases": ["neuronx-cc-2.20"]}, ["neuronx-cc-2.20"]),
        ({"keep_releases": 1}, ["neuronx-cc-2.19", "neuronx-cc-2.20"]),
        ({"keep_releases": 0, "older_than": timedelta(hours=40)}, ["neuronx-cc-2.19"]),
        ({"unused_for": timedelta(hours=20)}, ["neuronx-cc-2.19", "neuronx-cc-2.20"]),
    ],
)
def test_clean_selects_entries_that_match_all_conditions(conditions: dict[str, Any], chosen: list[str]) -> None:
    objects = [packed("neuronx-cc-2.19", 48), packed("neuronx-cc-2.20", 24), packed("neuronx-cc-2.21", 1)]
    found = to_clean(cache_contents(objects).entries, now=NOON, **conditions)
    assert [entry.release for entry in found] == chosen


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("team-cache", CacheLocation(bucket="team-cache")),
        ("s3://team-cache/", CacheLocation(bucket="team-cache")),
        ("s3://team-cache/some/folder/", CacheLocation(bucket="team-cache", folder="some/folder")),
    ],
)
def test_cache_is_named_by_bucket_or_url(text: str, expected: CacheLocation) -> None:
    assert cache_location(text) == expected


@pytest.mark.parametrize("text", ["", "s3://", "No_Bucket", "s3://a//b", "https://team-cache"])
def test_invalid_cache_location_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither the name of a bucket"):
        cache_location(text)


def test_unused_entries_are_only_packed_ones_in_unused_places() -> None:
    old, new = packed("neuronx-cc-2.21", 48), packed("neuronx-cc-2.21", 1)
    alone = CachedObject(key=f"{DIRECT}/model.done", size=1, modified=NOON - timedelta(hours=48))
    again = replace(old, key=old.key.replace("0.neff", "1.neff"))
    entries = cache_contents([again, new, alone]).entries
    assert to_clean(entries, now=NOON, unused_for=timedelta(hours=20)) == ()
