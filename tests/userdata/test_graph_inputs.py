"""The shapes that a recompiled graph is shown with, from XLA's module files as XLA writes them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.userdata.cache_node import URL, CacheNode, place
from tests.userdata.fake_compiler import COMPILER
from trn_cache.entries import Entries
from trn_cache.graph_inputs import Graph, described, graph_of
from trn_cache.use import RECOMPILES, Use

TYPES = {"s64": 5, "f32": 11, "bf16": 16}


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found, value = found + bytes([value & 0x7F | 0x80]), value >> 7
    return found + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def shape(kind: str, *dimensions: int, packed: bool = True) -> bytes:
    """ShapeProto: element_type 2, dimensions 3, layout 5."""
    sizes = message(3, b"".join(map(varint, dimensions))) if packed else b"".join(number(3, one) for one in dimensions)
    return number(2, TYPES[kind]) + sizes + message(5, message(1, varint(0)))


def module(name: str, shapes: Sequence[bytes], *, instructions: bytes = b"x" * 300_000) -> bytes:
    """HloModuleProto: name 1, entry_computation_name 2, computations 3, host_program_shape 4, id 5."""
    program = b"".join(message(1, each) for each in shapes) + message(2, shapes[0]) + message(3, b"p0")
    return (
        message(1, name.encode())
        + message(2, b"main.1")
        + message(3, instructions)
        + message(4, program)
        + number(5, 2**40)
        + message(3, instructions)
    )


def entry(folder: Path, content: bytes, file: str = "model.hlo_module.pb", name: str = "MODULE_1+2") -> Path:
    """A finished one."""
    path = folder / f"neuronxcc-{COMPILER}" / name
    path.mkdir(parents=True)
    (path / file).write_bytes(content)
    (path / "model.neff").write_bytes(b"NEFF")
    (path / "model.done").touch()
    return path


@pytest.mark.parametrize("file", ["model.hlo_module.pb", "model.hlo.pb"])
@pytest.mark.parametrize("packed", [True, False])
def test_a_module_file_says_name_and_inputs(tmp_path: Path, file: str, *, packed: bool) -> None:
    shapes = [shape("bf16", 4096, 1024, packed=packed), shape("s64", 8, 128, packed=packed), shape("f32")]
    pair = number(2, 13) + message(4, shape("f32", 2)) + message(4, shape("s64"))
    found = graph_of(entry(tmp_path, module("SyncTensorsGraph.67", [*shapes, pair]), file))
    assert found == Graph("SyncTensorsGraph.67", ("bf16[4096,1024]", "s64[8,128]", "f32[]", "(f32[2], s64[])"))


@pytest.mark.parametrize("cut", [0, 1, 20, 300_030, -300_050])
def test_a_file_that_is_cut_off_or_something_else_says_nothing(tmp_path: Path, cut: int) -> None:
    whole = module("SyncTensorsGraph.67", [shape("f32", 2)])
    assert graph_of(entry(tmp_path, whole[:cut])) is None


@pytest.mark.parametrize(
    "content", [b"module0", b"\xff" * 40, b"\n\x02ab", b"\x0b"], ids=["text", "no-varint", "name-alone", "group"]
)
def test_what_is_no_module_says_nothing(tmp_path: Path, content: bytes) -> None:
    assert graph_of(entry(tmp_path, content)) is None


SMALL, LARGE = (Graph(f"Graph.{size}", ("bf16[64,64]", f"s64[{size},128]", "f32[]")) for size in (8, 16))


@pytest.mark.parametrize(
    ("graph", "others", "expected"),
    [
        (SMALL, [LARGE], "Graph.8: s64[8,128] for s64[16,128], of 3 inputs"),
        (SMALL, [Graph("other", ("f32[1]",) * 3), LARGE], "Graph.8: s64[8,128] for s64[16,128], of 3 inputs"),
        (SMALL, [], "Graph.8: bf16[64,64], s64[8,128], f32[], 3 inputs"),
        (SMALL, [SMALL], "Graph.8: the same shapes as another graph of 3 inputs"),
        (
            Graph("many", tuple(f"f32[{size}]" for size in range(9))),
            [SMALL],
            "many: f32[0], f32[1], f32[2], ..., 9 inputs",
        ),
    ],
)
def test_a_graph_is_told_from_the_nearest_other(graph: Graph, others: list[Graph], expected: str) -> None:
    assert described(graph, others) == expected


def step_of(batch: int, *, opcode: str = "dot", source: str = "/home/one/train.py") -> bytes:
    """Of one instruction: name 1, opcode 2, shape 3, metadata 7 with source_file 3 and source_line 4."""
    inputs = [shape("bf16", 4096, 1024), shape("s64", batch, 2048)]
    metadata = message(3, source.encode()) + number(4, len(source))
    instruction = message(1, b"dot.1") + message(2, opcode.encode()) + message(3, inputs[0]) + message(7, metadata)
    computation = message(1, b"main.1") + message(2, instruction) + number(5, 1)
    return module("SyncTensorsGraph.67", inputs, instructions=computation) + message(17, source.encode())


def test_the_warning_of_many_recompiles_says_in_which_shapes_they_differ(
    new_node: Callable[..., CacheNode], s3: Entries
) -> None:
    node = new_node()
    node.begin()
    use = Use(node.cache, s3, URL)
    entry(node.cache.root, step_of(32), name="MODULE_0+a")
    use.has_first_step = True
    use.as_record()
    for number in range(1, RECOMPILES + 2):
        entry(node.cache.root, step_of(32 - number), name=f"MODULE_{number}+a")
    found = use.as_record()
    (warning,) = found["warnings"]
    assert "MODULE_1+a (SyncTensorsGraph.67: s64[31,2048] for s64[" in warning
    assert len(found["recompiles"]) == RECOMPILES + 1
    entry(node.cache.root, step_of(1), name="MODULE_99+a")
    assert use.as_record()["warnings"] == [warning]


def test_where_the_stack_keeps_no_shapes_the_warning_says_so(new_node: Callable[..., CacheNode], s3: Entries) -> None:
    node = new_node(place("native"))
    node.begin()
    use = Use(node.cache, s3, URL)
    use.has_first_step = True
    use.as_record()
    node.compile(*(f"module{number}" for number in range(RECOMPILES + 1)))
    assert ".neff (its stack keeps no shapes)" in use.as_record()["warnings"][0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (step_of(16), "other shapes"),
        (step_of(32, opcode="add"), "other code"),
        (step_of(32, source="/home/another/train.py"), "path changed"),
        (step_of(32)[:-1], "other code or paths"),
        (b"", "other shapes, code or paths"),
    ],
    ids=["shapes", "code", "paths", "torn", "unknown"],
)
def test_the_reason_of_a_miss_tells_shapes_from_code(
    new_node: Callable[..., CacheNode], s3: Entries, content: bytes, reason: str
) -> None:
    node = new_node()
    node.begin()
    entry(node.cache.root, step_of(32), name="MODULE_0+a")
    node.begin()
    entry(node.cache.root, content, name="MODULE_1+a")
    assert Use(node.cache, s3, URL).as_record()["reasons"] == {reason: 1}
