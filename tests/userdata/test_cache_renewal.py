"""Places in use are renewed in S3, and unused ones are not. Places are deleted from a full disk."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.userdata import fake_compiler
from tests.userdata.cache_node import CacheNode, place
from trn_cache import renewal
from trn_cache.entries import Entries, ObjectState
from trn_cache.renewal import Renewal
from trn_job.compile_caches import LEAST_FREE, make_room

DAY = 86400
OLD = renewal.LIFETIME_SECONDS * renewal.DUE + DAY


@pytest.fixture
def later(s3: Entries, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock of S3 ahead by a number of seconds."""

    def set_ahead(seconds: float) -> None:
        now = s3.now + seconds
        monkeypatch.setattr(Entries, "now", property(lambda _: now))

    return set_ahead


@pytest.fixture
def filled(new_node: Callable[..., CacheNode], bucket: Any) -> CacheNode:
    """A node that has downloaded the three entries of its place."""
    first, second = new_node(), new_node()
    first.begin()
    first.compile("a", "b", "c")
    first.cache.store()
    second.begin()
    assert len([*bucket.objects.all()]) == 3
    return second


def renewed(node: CacheNode, *, records_reads: bool = True) -> int:
    Renewal(node.cache, node.s3, records_reads=records_reads).step()
    return node.cache.report.renewed


def test_place_in_use_is_renewed_with_its_contents(
    filled: CacheNode, new_node: Callable[..., CacheNode], later: Callable[[float], None]
) -> None:
    later(OLD)
    before = filled.s3.requests
    assert filled.result("a") == fake_compiler.result_of("a")
    assert renewed(filled) == 3
    assert filled.s3.requests - before == 1 + 2 * 3
    third = new_node()
    third.begin()
    assert [third.result(module) for module in "abc"] == [fake_compiler.result_of(module) for module in "abc"]
    assert not third.cache.report.warnings


@pytest.mark.parametrize(
    ("seconds", "requests"), [(renewal.YOUNG_SECONDS - 60, 0), (renewal.LIFETIME_SECONDS * renewal.DUE - DAY, 1)]
)
def test_recent_place_is_not_renewed(
    filled: CacheNode, later: Callable[[float], None], seconds: float, requests: int
) -> None:
    later(seconds)
    filled.result("a")
    before = filled.s3.requests
    assert renewed(filled) == 0
    assert filled.s3.requests - before == requests


def test_place_without_reads_is_left_to_expire(filled: CacheNode, later: Callable[[float], None]) -> None:
    later(OLD)
    assert renewed(filled) == 0


def test_place_counts_as_used_if_reads_leave_no_trace(filled: CacheNode, later: Callable[[float], None]) -> None:
    later(OLD)
    assert renewed(filled, records_reads=False) == 3


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"expires": 30 * DAY}, 3),
        ({"expires": 300 * DAY}, 0),
        ({"is_versioned": True}, 0),
        ({"is_versioned": True, "expires": 30 * DAY}, 3),
        ({"digest": ""}, 0),
    ],
    ids=["by-its-rule", "long-rule", "versioned", "versioned-with-rule", "no-checksum"],
)
def test_lifecycle_rule_of_the_bucket_decides_when_to_renew(
    filled: CacheNode,
    later: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
    state: dict[str, Any],
    expected: int,
) -> None:
    head = Entries.head
    begun = min(each.modified for each in filled.cache.in_s3_at_start.values())
    changes = {**state, **({"expires": begun + state["expires"]} if "expires" in state else {})}

    def with_rule(entries: Entries, url: str) -> ObjectState | None:
        found = head(entries, url)
        return found and found._replace(**changes)

    monkeypatch.setattr(Entries, "head", with_rule)
    later(OLD)
    filled.result("a")
    assert renewed(filled) == expected


@pytest.mark.usefixtures("filled")
def test_broken_or_missing_entry_is_not_renewed(
    new_node: Callable[..., CacheNode], bucket: Any, later: Callable[[float], None]
) -> None:
    gone, poisoned, _ = bucket.objects.all()
    poisoned.Object().put(Body=b"TORN", Metadata=poisoned.get()["Metadata"])
    node = new_node()
    node.begin()
    gone.delete()
    later(OLD)
    assert renewed(node, records_reads=False) == 1
    assert len([*bucket.objects.all()]) == 2


def test_renewals_stay_within_limits_per_run_and_job(
    filled: CacheNode, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewal, "MAX_PER_ATTEMPT", 2)
    monkeypatch.setattr(renewal, "MAX_AT_ONCE", 1)
    later(OLD)
    filled.result("a")
    renewing = Renewal(filled.cache, filled.s3, records_reads=True)
    for expected in (1, 2, 2):
        renewing.step()
        assert filled.cache.report.renewed == expected


def test_no_request_follows_a_refusal(
    filled: CacheNode, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> bool:
        raise OSError("S3 refuses: AccessDenied")

    monkeypatch.setattr(Entries, "renew", refuse)
    monkeypatch.setattr(renewal, "MAX_AT_ONCE", 1)
    later(OLD)
    filled.result("a")
    renewing = Renewal(filled.cache, filled.s3, records_reads=True)
    with pytest.raises(OSError, match="AccessDenied"):
        renewing.step()
    before = filled.s3.requests
    renewing.step()
    assert (filled.s3.requests, filled.cache.report.renewed) == (before, 0)


class Disk(NamedTuple):
    total: int
    used: int
    free: float


@pytest.mark.parametrize("full", [False, True])
def test_full_disk_loses_the_least_recently_used_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, full: bool
) -> None:
    places = [tmp_path / place(compiler=compiler).path for compiler in ("2.19", "2.20", "2.21", "2.22")]
    for age, each in enumerate(reversed(places)):
        (each / "neuronxcc").mkdir(parents=True)
        os.utime(each, (10**9 - age, 10**9 - age))
    (tmp_path / "notes/of/my/own").mkdir(parents=True)

    def usage(_: Path) -> Disk:
        there = sum(each.exists() for each in places)
        return Disk(100, 0, 100 - 22 * there if full else 100 * LEAST_FREE)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    removed = make_room(tmp_path, [places[0]])
    assert [each.exists() for each in places] == [True, not full, True, True]
    assert removed == ([str(places[1].relative_to(tmp_path))] if full else [])
    assert (tmp_path / "notes/of/my/own").exists()
