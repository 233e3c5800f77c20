"""The compile cache of nodes, with fake compilers in real processes and the S3 of the embedded AWS."""

import hashlib
import io
import os
import re
import resource
import tarfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.userdata import fake_compiler
from tests.userdata.cache_node import URL, CacheNode, place
from trainium_wire.cache_place import DIGEST, parse_key
from trn_cache.cache import BOOT
from trn_cache.entries import Entries
from trn_cache.packing import Unpacking
from trn_cache.use import RECOMPILES, CacheUsage

MODULES = [f"module{number}" for number in range(12)]
STACKS = ("xla", "native")


def keys_in(bucket: Any) -> list[str]:
    return [each.key for each in bucket.objects.all()]


def test_only_entries_missing_in_s3_are_stored(new_node: Callable[..., CacheNode], s3: Entries) -> None:
    leader, other = new_node(), new_node(urgent=False)
    for node in (leader, other):
        node.begin()
        node.compile("a", "b")
    other.compile("c")
    leader.cache.store()
    before = s3.requests
    other.cache.store()
    assert (s3.requests - before, other.cache.report.stored) == (2, 1)


def test_failed_compilation_is_a_miss_with_the_last_line(new_node: Callable[..., CacheNode], s3: Entries) -> None:
    node = new_node()
    node.begin()
    fake_compiler.fail("xla", node.cache.root, "a")
    used = CacheUsage(node.cache, s3, URL).as_record()
    name = fake_compiler.name_of("xla", "a")
    assert (used["misses"], used["failed"]) == (1, [f"{name}: failed: [F137] neuronx-cc was forcibly killed"])


def packed(*members: tuple[str, bytes, bytes]) -> bytes:
    """A tar of these names, types and contents."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, len(content), "/etc/hostname"
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def with_other_bytes(body: bytes) -> bytes:
    return body.replace(b"NEFF", b"TORN")


FILE, LINK, DONE = tarfile.REGTYPE, tarfile.SYMTYPE, ("model.done", tarfile.REGTYPE, b"1")


POISONED = {
    "other bytes": (with_other_bytes, "its checksum is wrong"),
    "no mark": (packed(("model.neff", FILE, b"NEFF")), "it is not a finished entry"),
    "empty result": (packed(("model.neff", FILE, b""), DONE), "it is not a finished entry"),
    "above": (packed(("../evil", FILE, b"1"), DONE), "it holds ../evil, which is not a file of an entry"),
    "elsewhere": (packed(("/tmp/evil", FILE, b"1"), DONE), "it holds /tmp/evil, which is not a file of an entry"),
    "a link": (packed(("model.neff", LINK, b""), DONE), "it holds model.neff, which is not a file of an entry"),
    "long name": (packed(("x" * 300, FILE, b"1"), DONE), "it holds x+, which cannot be written: File name too long"),
    "file and folder": (
        packed(("a", FILE, b"1"), ("a/b", FILE, b"1"), DONE),
        "it holds a/b, which cannot be written: .*",
    ),
    "twice": (packed(DONE, DONE), "it holds model.done, which cannot be written: File exists"),
    "large header": (
        packed(("large", tarfile.XHDTYPE, bytes(100_000)), DONE),
        "it has a header of 100352 bytes",
    ),
    "no file": (packed(), "it holds no file"),
    "no tar": (b"no tar" * 200, "it cannot be read: .*"),
    "torn tar": (packed(("model.neff", FILE, b"NEFF" * 200))[:900], "it cannot be read: it ends too early"),
}


@pytest.mark.parametrize(("poison", "why"), POISONED.values(), ids=POISONED)
def test_poisoned_entry_is_replaced_and_not_used(
    new_node: Callable[..., CacheNode], bucket: Any, poison: bytes | Callable[[bytes], bytes], why: str
) -> None:
    """A poison in bytes is stored with a valid checksum."""
    first, second, third = new_node(), new_node(), new_node()
    first.compile("a")
    first.cache.store()
    (stored,) = bucket.objects.all()
    content = stored.get()
    if isinstance(poison, bytes):
        stored.Object().put(Body=poison, Metadata={DIGEST: hashlib.sha256(poison).hexdigest()})
    else:
        stored.Object().put(Body=poison(content["Body"].read()), Metadata=content["Metadata"])
    second.begin()
    assert [file.name for file in second.folder.rglob("*") if file.is_file()] == [BOOT]
    assert not [*second.folder.parent.rglob("evil")]
    (warning,) = second.cache.report.warnings
    assert re.fullmatch(rf"neuronx-cc-\S+ is not used: {why}", warning), warning
    second.compile("a")
    second.cache.store()
    third.begin()
    assert third.result("a") == fake_compiler.result_of("a")
    assert not third.cache.report.warnings


def test_poisoned_entry_does_not_stop_others(new_node: Callable[..., CacheNode], bucket: Any) -> None:
    first, second = new_node(), new_node()
    first.compile(*MODULES)
    first.cache.store()
    bad = packed(("x" * 300, FILE, bytes(100_000)), DONE)  # The largest entry, which is read first.
    folder = next(iter(bucket.objects.all())).key.rpartition("/")[0]
    for name in ("MODULE_1+1", "y" * 300):
        metadata = {DIGEST: hashlib.sha256(bad).hexdigest()}
        bucket.put_object(Key=f"{folder}/{name}.tar", Body=bad, Metadata=metadata)
    second.begin()
    assert all(second.has(module) for module in MODULES)
    assert len(second.cache.report.warnings) == 2


def test_entry_without_checksum_is_not_used(new_node: Callable[..., CacheNode], bucket: Any) -> None:
    first, second = new_node(), new_node()
    first.compile("a")
    first.cache.store()
    (stored,) = bucket.objects.all()
    stored.Object().put(Body=stored.get()["Body"].read())
    second.begin()
    assert not second.has("a")


def test_poisoned_entry_is_replaced_by_one_node_only(new_node: Callable[..., CacheNode], bucket: Any) -> None:
    nodes = [new_node(), new_node()]
    key = nodes[0].place.key(fake_compiler.name_of("xla", "a"))
    bucket.put_object(Key=f"neuron-compile-cache/{key}", Body=b"poison")
    for node in nodes:
        node.begin()
        node.compile("a")
    for node in nodes:
        node.cache.store()
    assert [node.cache.report.stored for node in nodes] == [1, 0]


def test_expired_poisoned_entry_is_stored_again(new_node: Callable[..., CacheNode], bucket: Any) -> None:
    node = new_node()
    key = f"neuron-compile-cache/{node.place.key(fake_compiler.name_of('xla', 'a'))}"
    bucket.put_object(Key=key, Body=b"poison")
    node.begin()
    bucket.objects.all().delete()
    node.compile("a")
    for _ in range(2):
        node.cache.store()
    assert keys_in(bucket) == [key]
    assert len(node.cache.report.warnings) == 1


def test_poisoned_entry_is_replaced_by_node_other_than_first(new_node: Callable[..., CacheNode], bucket: Any) -> None:
    node = new_node(urgent=False)
    key = f"neuron-compile-cache/{node.place.key(fake_compiler.name_of('xla', 'a'))}"
    bucket.put_object(Key=key, Body=b"poison")
    node.begin()
    node.compile("a")
    node.cache.store()
    assert node.cache.report.stored == 1


def test_reads_by_the_cache_itself_are_not_hits(new_node: Callable[..., CacheNode], s3: Entries) -> None:
    first, second = new_node(), new_node()
    first.begin()
    first.compile("a", "b")
    # Its next job stores them.
    first.begin()
    first.cache.store()
    second.begin()
    for node in (first, second):
        assert node.result("a")
        assert CacheUsage(node.cache, s3, URL).as_record()["hits"] == 1


def test_lock_is_not_stored_with_its_entry(new_node: Callable[..., CacheNode]) -> None:
    first, second = new_node(), new_node()
    first.compile("a")
    lock = fake_compiler.lock_of("xla", first.cache.root, "a")
    lock.touch()
    first.cache.store()
    second.begin()
    assert second.has("a")
    assert not [*second.folder.rglob(lock.name)]


def test_name_unknown_to_torchneuron_is_not_an_entry(new_node: Callable[..., CacheNode], bucket: Any) -> None:
    node = new_node(place("native"))
    node.begin()
    node.compile("a")
    path = node.cache.root / fake_compiler.name_of("native", "a")
    path.rename(path.with_name(f"half-{path.name}"))
    node.cache.store(settled=True)
    assert not keys_in(bucket)
    node.begin()
    assert len(node.cache.report.removed) == 1


def test_second_attempt_keeps_nothing_of_the_first(tmp_path: Path) -> None:
    unpacking = Unpacking(tmp_path / "part/entry")
    (tmp_path / "part").mkdir()
    for names in (("model.done", "other"), ("model.neff",)):
        unpacking.take(io.BytesIO(packed(*((name, FILE, b"1") for name in names))))
    assert [file.name for file in (tmp_path / "part/entry").iterdir()] == ["model.neff"]


@pytest.mark.parametrize("name", ["../../outside", ".incoming/x"])
def test_invalid_entry_name_is_not_used(new_node: Callable[..., CacheNode], bucket: Any, name: str) -> None:
    first, second = new_node(), new_node()
    first.compile("a")
    first.cache.store()
    (stored,) = bucket.objects.all()
    content = stored.get()
    key = f"neuron-compile-cache/{first.place.key(name)}"
    bucket.put_object(Key=key, Body=content["Body"].read(), Metadata=content["Metadata"])
    second.begin()
    assert second.cache.report.warnings == [f"{name}.tar is not the name of an entry: not used"]
    assert [*second.cache.at_start] == [fake_compiler.name_of("xla", "a")]


def test_short_write_of_last_block_leaves_no_truncated_entry(new_node: Callable[..., CacheNode]) -> None:
    first, second = new_node(place("native")), new_node(place("native"))
    first.compile("a")
    first.cache.store()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(fake_compiler.result_of("a")) // 2, hard))
    try:
        second.begin()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not second.has("a")
    assert "not filled from S3" in second.cache.report.warnings[0]


@pytest.mark.parametrize("hours", [-1, 1])
def test_file_time_wrong_by_an_hour_changes_nothing(new_node: Callable[..., CacheNode], hours: int) -> None:
    first, second = new_node(place("jax")), new_node(place("jax"))
    first.begin()
    first.compile("a")
    path = first.cache.root / fake_compiler.name_of("jax", "a")
    moment = path.stat().st_mtime + 3600 * hours
    os.utime(path, (moment, moment))
    first.cache.store()
    assert first.cache.report.stored == 0
    first.cache.store(settled=True)
    second.begin()
    assert second.result("a") == fake_compiler.result_of("a")


def test_entry_without_done_mark_counts_once_its_files_settle(new_node: Callable[..., CacheNode]) -> None:
    times = [0.0]
    node = new_node(place("jax"), clock=lambda: times[0])
    node.begin()
    node.compile("a")
    path = node.cache.root / fake_compiler.name_of("jax", "a")
    for moment, stored in ((0, 0), (9, 0), (18, 0), (20, 1)):
        if moment == 9:
            # Written once more.
            path.write_bytes(fake_compiler.result_of("a"))
            os.utime(path, (1, 1))
        times[0] = moment
        node.cache.store()
        assert node.cache.report.stored == stored, moment
    node.compile("torn")
    node.begin()
    assert (node.has("a"), node.has("torn")) == (True, False)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"lnc": 1}, "other logical NeuronCore configuration"),
        ({"world_size": 32}, "other number of processes"),
        ({"instance_type": "trn1.32xlarge"}, "other chip"),
        ({"compiler": "2.22.1"}, "other release"),
        ({"compiler_flags": "-O1"}, "other flags"),
        ({"lnc": 1, "world_size": 32}, "other number of processes and other logical NeuronCore configuration"),
    ],
)
def test_other_compilation_settings_use_another_place(
    new_node: Callable[..., CacheNode], s3: Entries, changes: dict[str, Any], reason: str
) -> None:
    first, second = new_node(place("native")), new_node(place("native", **changes))
    first.compile("a")
    first.cache.store()
    second.begin()
    assert not second.has("a")
    second.compile("a")
    assert CacheUsage(second.cache, s3, URL).as_record()["reasons"] == {reason: 1}


def test_reasons_of_misses_in_the_same_place(new_node: Callable[..., CacheNode], s3: Entries) -> None:
    node, later = new_node(), new_node()
    node.begin()
    node.compile("a")
    assert CacheUsage(node.cache, s3, URL).as_record()["reasons"] == {"first time": 1}
    node.cache.store()
    later.begin()
    same_graph = later.cache.root / fake_compiler.name_of("xla", "a").replace("+d7517139", "+00000000")
    later.compile("b")
    (later.cache.root / fake_compiler.name_of("xla", "b")).rename(same_graph)
    later.compile("c")
    reasons = CacheUsage(later.cache, s3, URL).as_record()["reasons"]
    assert reasons == {"other flags": 1, "other shapes, code or paths": 1}


def test_many_recompiles_while_training_are_a_warning(new_node: Callable[..., CacheNode], s3: Entries) -> None:
    node = new_node()
    node.begin()
    use = CacheUsage(node.cache, s3, URL)
    node.compile("before")
    use.has_first_step = True
    use.as_record()
    node.compile(*MODULES[:RECOMPILES])
    assert not use.as_record()["warnings"]
    node.compile(MODULES[RECOMPILES])
    assert use.as_record()["recompiled"] == RECOMPILES + 1
    assert f"more than {RECOMPILES} graphs were compiled after the first step" in use.as_record()["warnings"][0]


@pytest.mark.parametrize("name", ["neuronxcc-2.21+0/MODULE_1+2", "ab/cd/ef.neff"])
@pytest.mark.parametrize("changes", [{}, {"stack": "native", "compiler_flags": "-O1  --lnc=2"}])
def test_key_consists_of_place_and_name(name: str, changes: dict[str, Any]) -> None:
    where = place(**changes)
    assert parse_key(where.key(name)) == (where, name)


@pytest.mark.parametrize("key", ["", "neuronxcc-2.21+0/MODULE_1+2/model.neff", "x/trn2-lnc2/xla/world-8/.tar"])
def test_invalid_key_has_no_place(key: str) -> None:
    assert parse_key(key) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"compiler": " "}, "not a version"),
        ({"compiler": "../2"}, "not a version"),
        ({"instance_type": "m7i.large"}, "not an instance type"),
        ({"stack": "cuda"}, "native, xla, jax, vllm"),
    ],
)
def test_invalid_place_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        place(**changes)


def test_concurrent_writers_of_an_entry_have_one_owner(new_node: Callable[..., CacheNode], bucket: Any) -> None:
    nodes = [new_node() for _ in range(8)]
    barrier = threading.Barrier(len(nodes))

    def store(node: CacheNode) -> int:
        node.compile("a")
        barrier.wait()
        node.cache.store()
        return node.cache.report.stored

    with ThreadPoolExecutor(len(nodes)) as side_by_side:
        assert sum(side_by_side.map(store, nodes)) == len(keys_in(bucket)) == 1
