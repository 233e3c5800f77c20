"""Faults during fills and write-backs: requests that S3 refuses or cuts, slow ones, changed entries, a full disk.

The node continues with its entries, reports the reason once, and stores finished entries once S3 accepts requests.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from email.message import Message
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest

from tests.userdata import fake_compiler
from tests.userdata.cache_node import URL, CacheNode
from tests.userdata.faulty_s3 import Fault, FaultyS3
from trn_cache import cache, entries
from trn_cache.entries import Entries
from trn_cache.layouts import LAYOUTS, Entry
from trn_node import web
from trn_node.imds import Credentials

MODULES = [f"module{number}" for number in range(12)]
TIMEOUT_SECONDS = 6
"""Also for successful requests: a busy machine needed more than a second for one."""
REASONS = {
    "refused": r"S3 refuses (GET|PUT) s3://compiled/\S*: 403 AccessDenied Access Denied",
    "cut": r"\S+(: .*)?(incomplete|closed connection|reset by peer|IncompleteRead|Broken pipe|ends too early).*",
    "still": r"\S+: timed out",
}
NewNode = Callable[..., CacheNode]


@pytest.fixture
def faulty(endpoint: Any, keys: Credentials, s3: Entries, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyS3]:
    del s3
    with FaultyS3(endpoint.endpoint, endpoint.region, keys) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", between.endpoint)
        yield between


def modules_of(node: CacheNode) -> set[str]:
    """The finished modules of a node, each with all its bytes."""
    found = LAYOUTS[node.place.stack].finished(node.cache.root)
    there = {module for module in MODULES if fake_compiler.name_of(node.place.stack, module) in found}
    assert len(there) == len(found)
    for module in there:
        assert node.result(module) == fake_compiler.result_of(module)
    return there


def in_bucket(bucket: Any) -> int:
    return len([*bucket.objects.all()])


@pytest.fixture
def filled(new_node: NewNode, bucket: Any) -> int:
    """A bucket with all modules."""
    node = new_node()
    node.compile(*MODULES)
    node.cache.store()
    return in_bucket(bucket)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(("fault", "after"), [("refused", 0), ("cut", 1), ("still", 5)])
def test_broken_fill_leaves_complete_entries_and_one_warning(
    new_node: NewNode, faulty: FaultyS3, bucket: Any, fault: Fault, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fault follows after a number of successful requests. The first request lists the entries."""
    if fault == "still":
        monkeypatch.setattr(web, "TIMEOUT_SECONDS", TIMEOUT_SECONDS)
    node = new_node()
    faulty.fault = lambda _method, number: fault if number >= after else ""
    node.begin()
    there = modules_of(node)
    assert len(there) == max(0, after - 1)
    (warning,) = node.cache.report.warnings
    assert_says(warning, "not filled from S3", fault)
    assert not [*node.cache.root.glob(".incoming*")]
    assert faulty.seen["GET"] <= after + cache.THREADS
    rest = sorted({*MODULES} - there)
    faulty.heal()
    assert node.workers(2, MODULES) == [0, 0, *rest]
    node.cache.store(settled=True)
    assert (node.cache.report.stored, in_bucket(bucket)) == (0, len(MODULES))
    node.begin()
    assert not node.cache.report.warnings


@pytest.mark.parametrize(
    ("fault", "after", "urgent"),
    [
        ("refused", 0, True),
        ("cut", 5, False),
    ],
)
def test_refused_store_warns_once_and_is_retried(
    new_node: NewNode, faulty: FaultyS3, bucket: Any, fault: Fault, after: int, urgent: bool
) -> None:
    node = new_node(urgent=urgent)
    node.begin()
    faulty.fault = lambda method, number: fault if method == "PUT" and number >= after else ""
    # In a different order than their names, so that each time another entry comes first.
    for number in range(0, len(MODULES), 6):
        node.compile(*MODULES[number : number + 6])
        node.cache.store()
    node.cache.store(settled=True)
    (warning,) = node.cache.report.warnings
    assert_says(warning, "not written to S3", fault)
    assert (node.cache.report.stored, in_bucket(bucket)) == (after, after)
    assert modules_of(node) == {*MODULES}
    faulty.heal()
    node.cache.store()
    assert (node.cache.report.stored, in_bucket(bucket)) == (len(MODULES), len(MODULES))
    assert "compile cache: resolved: not written to S3" in node.log
    reader = new_node()
    reader.begin()
    assert modules_of(reader) == {*MODULES}


@pytest.mark.usefixtures("filled")
def test_slow_fill_ends_and_the_job_begins(new_node: NewNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "THREADS", 1)
    seconds = count(step=cache.LONGEST_SECONDS / 30)
    node = new_node(clock=lambda: next(seconds))
    node.begin()
    assert 0 < len(modules_of(node)) < len(MODULES)
    (warning,) = node.cache.report.warnings
    assert warning.startswith("not filled from S3: ")
    assert warning.endswith("not done after 15 minutes")


def test_slow_write_back_ends_and_the_next_one_continues(new_node: NewNode, bucket: Any) -> None:
    seconds = iter([0.0, 0.0, *(cache.LONGEST_SECONDS / 8 * number for number in range(10))])
    node = new_node(clock=lambda: next(seconds, 0.0))
    node.begin()
    node.compile(*MODULES)
    node.cache.store()
    assert 0 < in_bucket(bucket) < len(MODULES)
    assert node.cache.report.warnings[0].endswith("not done after 15 minutes")
    node.cache.store()
    assert in_bucket(bucket) == len(MODULES)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("not_stopped", [0, 1, 3])
def test_stopped_job_does_not_wait_for_its_fill(
    new_node: NewNode, monkeypatch: pytest.MonkeyPatch, not_stopped: int
) -> None:
    """The job is stopped after a number of checks. An entry is read in several blocks."""
    monkeypatch.setattr(cache, "THREADS", 1)
    node = new_node()
    node.cache.prepare()
    answers = iter([False] * not_stopped)
    node.cache.fill(lambda: next(answers, True))
    assert not node.cache.at_start
    assert not node.cache.report.warnings


def test_unstorable_entry_does_not_delay_others(
    new_node: NewNode, bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = new_node()
    node.begin()
    node.compile(*MODULES)
    first = min(LAYOUTS["xla"].finished(node.cache.root))
    with (node.cache.root / first / "model.neff").open("ab") as file:
        file.write(bytes(100_000))
    monkeypatch.setattr(entries, "LARGEST", 50_000)
    node.cache.store()
    node.cache.store()
    assert in_bucket(bucket) == len(MODULES) - 1
    assert node.cache.report.warnings == [
        f"{first} is not stored: it is 0.0 GiB, and S3 accepts at most 5 GiB per request"
    ]


def rewrite(folder: Path) -> None:
    (folder / "model.neff").write_bytes(b"half")


def lose_its_result(folder: Path) -> None:
    (folder / "model.neff").unlink()


@pytest.mark.parametrize("change", [shutil.rmtree, rewrite, lose_its_result])
@pytest.mark.parametrize("is_late", [False, True])
def test_entry_deleted_or_changed_meanwhile_is_not_stored(
    new_node: NewNode, bucket: Any, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object], is_late: bool
) -> None:
    node = new_node()
    node.begin()
    node.compile("module0", "module1")
    first = min(LAYOUTS["xla"].finished(node.cache.root))
    pack = cache.pack

    def pack_late(entry: Entry, file: Path) -> None:
        if is_late:
            pack(entry, file)
        if entry.name == first:
            change(entry.path)
        if not is_late:
            pack(entry, file)

    monkeypatch.setattr(cache, "pack", pack_late)
    node.cache.store()
    assert (in_bucket(bucket), node.cache.report.warnings) == (1, [])


@pytest.mark.usefixtures("filled")
def test_entries_without_disk_space_stay_in_s3(new_node: NewNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are 12 entries of one size. The disk has room for 1,000, and the cache leaves 5 % of it free."""
    node = new_node()
    size = next(iter(node.s3.entries(f"{URL}/"))).size
    disk = Disk(total=1000 * size, free=50 * size + 5 * size + 1)
    monkeypatch.setattr(shutil, "disk_usage", Mock(return_value=disk))
    node.begin()
    assert len(modules_of(node)) == 5
    assert node.cache.report.warnings == ["no disk space for 7 of 12 entries"]


class Disk(NamedTuple):
    total: int
    free: int


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(("boot", "next_boot"), [("first", "second"), ("", ""), ("first", "first")])
def test_entry_truncated_at_power_loss_is_read_again(new_node: NewNode, boot: str, next_boot: str) -> None:
    node = new_node()
    node.boot = boot
    node.begin()
    result = LAYOUTS["xla"].finished(node.cache.root)[fake_compiler.name_of("xla", "module0")].result
    # The length of the file is unchanged, as on a disk whose last blocks were never written.
    result.write_bytes(b"torn".ljust(result.stat().st_size, b"\0"))
    node.boot = next_boot
    node.begin()
    is_same_boot = bool(boot) and boot == next_boot
    assert (node.result("module0") == fake_compiler.result_of("module0")) != is_same_boot
    assert node.cache.report.fetched == (0 if is_same_boot else len(MODULES))


class TwoPages(Entries):
    """A list that comes on two pages."""

    def _send(self, *_: Any, query: str = "", **__: Any) -> web.Response:
        item = "<Contents><Key>cache/{}</Key><Size>1</Size></Contents>"
        page = item.format("b") if "continuation-token=more%2F" in query else item.format("a")
        more = "" if "continuation" in query else "<NextContinuationToken>more/</NextContinuationToken>"
        return web.Response(200, Message(), f"<List>{page}{more}</List>".encode())


def test_list_has_all_pages_up_to_the_request_limit() -> None:
    assert [each.key for each in TwoPages().entries("s3://compiled/cache/")] == ["a", "b"]
    assert [each.key for each in TwoPages().entries("s3://compiled/cache/", 1)] == ["a"]


def assert_says(warning: str, what: str, fault: str) -> None:
    assert re.fullmatch(f"{what}: {REASONS[fault]}", warning), warning
