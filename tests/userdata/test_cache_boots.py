"""A node after a power loss: the state of the compile cache on its disk, and which entries it uses."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.userdata import fake_compiler
from tests.userdata.cache_node import CacheNode
from trn_cache import boots
from trn_cache.boots import CHECKSUMS
from trn_cache.layouts import LAYOUTS


def tear(node: CacheNode, module: str) -> None:
    """Truncate as a disk does whose last blocks were never written: the length of the file is unchanged."""
    result = LAYOUTS[node.place.stack].finished(node.cache.root)[fake_compiler.name_of(node.place.stack, module)].result
    content = result.read_bytes()
    result.write_bytes(content[: len(content) // 2].ljust(len(content), b"\0"))


@pytest.mark.parametrize(("boot", "next_boot"), [("first", "second"), ("", "")], ids=("known", "unknown"))
def test_entry_truncated_at_power_loss_is_read_again(
    new_node: Callable[..., CacheNode], boot: str, next_boot: str
) -> None:
    first, second = new_node(), new_node()
    first.begin()
    first.compile("a", "b")
    first.cache.store()
    second.boot = boot
    second.begin()
    tear(second, "a")
    second.boot = next_boot
    second.begin()
    name = fake_compiler.name_of("xla", "a")
    assert second.cache.report.removed == [f"{name}: damaged by a power failure?"]
    assert second.cache.report.fetched == 1
    for module in ("a", "b"):
        assert second.result(module) == fake_compiler.result_of(module)


def test_entry_not_stored_in_s3_survives_a_boot_and_is_stored_then(
    new_node: Callable[..., CacheNode], bucket: Any
) -> None:
    node = new_node(url="s3://re fused/cache")
    node.begin()
    node.compile("a")
    node.cache.store()
    node = CacheNode(node.folder, node.s3, node.place)
    node.boot = "second"
    node.begin()
    assert not node.cache.report.removed
    node.cache.store()
    assert len([*bucket.objects.all()]) == 1


def test_entry_is_not_read_for_its_checksum_within_a_boot(
    new_node: Callable[..., CacheNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(boots, "digest_of", lambda entry: read.append(entry.name) or "another")
    node = new_node()
    node.begin()
    node.compile("a")
    node.begin()
    assert (node.has("a"), read) == (True, [])
    node.boot = "second"
    node.begin()
    assert (node.has("a"), len(read)) == (False, 1)


def test_truncated_checksums_are_not_trusted(new_node: Callable[..., CacheNode]) -> None:
    node = new_node()
    node.begin()
    node.compile("a", "b")
    node.cache.store()
    file = node.cache.root / CHECKSUMS
    file.write_bytes(file.read_bytes()[:-20].ljust(file.stat().st_size, b"\0"))
    node.boot = "second"
    node.begin()
    assert (len(node.cache.report.removed), node.cache.report.fetched) == (1, 1)
