"""The compile cache of nodes, with fake compilers in real processes and the S3 of the embedded AWS."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.userdata import fake_compiler
from tests.userdata.cache_node import URL, CacheNode, killed_at, place
from trainium_core.compile_cache.place import parse_key
from trn_cache.entries import Entries
from trn_cache.layouts import LAYOUTS
from trn_cache.use import RECOMPILES, Use

MODULES = [f"module{number}" for number in range(12)]
STACKS = ("xla", "native")
FEWEST_STEPS, MOST_STEPS = 5, 200


def keys_in(bucket: Any) -> list[str]:
    return [each.key for each in bucket.objects.all()]


@pytest.mark.parametrize("stack", STACKS)
def test_a_second_cluster_starts_with_what_the_first_one_compiled(
    new_node: Callable[..., CacheNode], s3: Entries, bucket: Any, stack: str
) -> None:
    first, second = new_node(place(stack)), new_node(place(stack))
    first.begin()
    assert first.workers(8, MODULES) == [0] * 8 + sorted(MODULES)
    first.cache.store(settled=True)
    assert len(keys_in(bucket)) == len(MODULES)
    before = s3.requests
    second.begin()
    assert s3.requests - before == len(MODULES) + 1
    assert second.workers(1, MODULES) == [0]
    used = Use(second.cache, s3, URL).as_record()
    assert (used["hits"], used["misses"], used["fetched"]) == (len(MODULES), 0, len(MODULES))


def test_only_entries_that_are_not_stored_yet_are_stored(new_node: Callable[..., CacheNode], s3: Entries) -> None:
    leader, other = new_node(), new_node(urgent=False)
    for node in (leader, other):
        node.begin()
        node.compile("a", "b")
    other.compile("c")
    leader.cache.store()
    before = s3.requests
    other.cache.store()
    assert (s3.requests - before, other.cache.report.stored) == (2, 1)


@pytest.mark.parametrize("stack", STACKS)
def test_a_killed_compiler_does_not_delay_the_others(new_node: Callable[..., CacheNode], stack: str) -> None:
    node = new_node(place(stack))
    node.begin()
    assert node.workers(1, MODULES[:3], CRASH=MODULES[1]) == [-9, MODULES[0]]
    node.begin()
    assert len(node.cache.report.removed) == 1
    assert node.cache.report.removed[0].endswith(": locked")
    assert node.workers(2, MODULES[:3]) == [0, 0, *MODULES[1:3]]


def test_an_entry_that_failed_is_shown_and_tried_again(new_node: Callable[..., CacheNode], s3: Entries) -> None:
    node = new_node()
    node.begin()
    assert node.workers(1, ["a"], FAIL="a") == [70]
    name = fake_compiler.name_of("xla", "a")
    said = f"{name}: failed: [F137] neuronx-cc was forcibly killed"
    assert Use(node.cache, s3, URL).as_record()["failed"] == [said]
    node.begin()
    assert node.cache.report.removed == [said]
    assert node.workers(1, ["a"]) == [0, "a"]


@pytest.mark.parametrize("stack", STACKS)
def test_a_compiler_that_is_killed_at_any_step_leaves_nothing_that_is_used(
    new_node: Callable[..., CacheNode], bucket: Any, stack: str
) -> None:
    node = new_node(place(stack))
    for finished in range(len([*fake_compiler.steps(stack, Path("/"), "a")])):
        for step in [*fake_compiler.steps(stack, node.cache.root, "a")][:finished]:
            step()
        node.cache.store()
        node.begin()
        assert not node.has("a")
        assert not [file for file in node.cache.root.rglob("*") if file.is_file()]
    assert not keys_in(bucket)


@pytest.mark.parametrize("stack", STACKS)
def test_a_node_that_is_killed_while_it_stores_or_reads_loses_and_tears_nothing(
    new_node: Callable[..., CacheNode], bucket: Any, stack: str
) -> None:
    first = new_node(place(stack))
    first.begin()
    first.compile("a", "b")
    for step in range(MOST_STEPS):
        if not killed_at(step, first.folder, first.cache.store):
            break
        first.begin()
        assert first.result("a") == fake_compiler.result_of("a")
    assert step > FEWEST_STEPS
    assert len(keys_in(bucket)) == 2
    second = new_node(place(stack))
    for step in range(MOST_STEPS):
        came_through = not killed_at(step, second.folder, second.begin)
        found = LAYOUTS[stack].finished(second.cache.root)
        for module in "ab":
            if fake_compiler.name_of(stack, module) in found:
                assert second.result(module) == fake_compiler.result_of(module)
        if came_through:
            assert step > FEWEST_STEPS
            break
        for module in "ab":
            # As if it had come no further: each of its steps is met.
            if fake_compiler.name_of(stack, module) in found and step % 2:
                path = second.cache.root / fake_compiler.name_of(stack, module)
                path.rename(second.folder / f"away-{step}-{module}")
    assert second.has("a")
    assert second.has("b")


@pytest.mark.parametrize(
    "poison", [lambda body: body.replace(b"NEFF", b"TORN"), lambda body: body[:-600]], ids=["other bytes", "torn"]
)
def test_a_poisoned_entry_is_not_used_and_replaced(
    new_node: Callable[..., CacheNode], bucket: Any, poison: Callable[[bytes], bytes]
) -> None:
    first, second, third = new_node(), new_node(), new_node()
    first.compile("a")
    first.cache.store()
    (stored,) = bucket.objects.all()
    content = stored.get()
    stored.Object().put(Body=poison(content["Body"].read()), Metadata=content["Metadata"])
    second.begin()
    assert not second.has("a")
    assert "is not used and will be replaced: its checksum is wrong" in second.cache.report.warnings[0]
    second.compile("a")
    second.cache.store()
    third.begin()
    assert third.result("a") == fake_compiler.result_of("a")
    assert not third.cache.report.warnings


def test_a_job_goes_on_without_the_bucket_and_nothing_is_lost(s3: Entries, bucket: Any, tmp_path: Path) -> None:
    node = CacheNode(tmp_path / "refused", s3, url="s3://not-there/cache")
    node.begin()
    assert node.cache.report.warnings[0].startswith("not filled from S3: S3 refuses GET s3://not-there/")
    node.compile("a")
    with pytest.raises(OSError, match="NoSuchBucket"):
        node.cache.store()
    again = CacheNode(node.folder, s3)
    again.begin()
    again.cache.store()
    assert len(keys_in(bucket)) == 1


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_wrong_by_an_hour_changes_nothing(new_node: Callable[..., CacheNode], hours: int) -> None:
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


def test_an_entry_without_its_done_mark_counts_once_its_files_stop_changing(new_node: Callable[..., CacheNode]) -> None:
    times = [0, 9, 11]
    node = new_node(place("jax"), clock=lambda: times[0])
    node.begin()
    node.compile("a")
    for stored in (0, 0, 1):
        node.cache.store()
        assert node.cache.report.stored == stored
        del times[: len(times) - 1 and 1]
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
    ],
)
def test_what_makes_another_result_is_another_place(
    new_node: Callable[..., CacheNode], s3: Entries, changes: dict[str, Any], reason: str
) -> None:
    first, second = new_node(place("native")), new_node(place("native", **changes))
    first.compile("a")
    first.cache.store()
    second.begin()
    assert not second.has("a")
    second.compile("a")
    assert Use(second.cache, s3, URL).as_record()["reasons"] == {reason: 1}


def test_reasons_of_misses_in_the_same_place(new_node: Callable[..., CacheNode], s3: Entries) -> None:
    node, later = new_node(), new_node()
    node.begin()
    node.compile("a")
    assert Use(node.cache, s3, URL).as_record()["reasons"] == {"first time": 1}
    node.cache.store()
    later.begin()
    same_graph = later.cache.root / fake_compiler.name_of("xla", "a").replace("+d7517139", "+00000000")
    later.compile("b")
    (later.cache.root / fake_compiler.name_of("xla", "b")).rename(same_graph)
    later.compile("c")
    reasons = Use(later.cache, s3, URL).as_record()["reasons"]
    assert reasons == {"other flags": 1, "other shapes, code or paths": 1}


def test_many_recompiles_while_training_are_a_warning(new_node: Callable[..., CacheNode], s3: Entries) -> None:
    node = new_node()
    node.begin()
    use = Use(node.cache, s3, URL)
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
def test_a_key_says_place_and_name(name: str, changes: dict[str, Any]) -> None:
    where = place(**changes)
    assert parse_key(where.key(name)) == (where, name)


@pytest.mark.parametrize("key", ["", "neuronxcc-2.21+0/MODULE_1+2/model.neff", "x/trn2-lnc2/xla/world-8/.tar"])
def test_what_is_no_entry_has_no_place(key: str) -> None:
    assert parse_key(key) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"compiler": " "}, "no version"),
        ({"compiler": "../2"}, "no version"),
        ({"instance_type": "m7i.large"}, "no instance type"),
        ({"stack": "cuda"}, "native, xla, jax, vllm"),
    ],
)
def test_a_place_of_nothing_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        place(**changes)
