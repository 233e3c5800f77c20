"""What a graph was compiled for, as the file of PyTorch/XLA's entry documents it: the shapes of its inputs, its code.

model.hlo_module.pb is XLA's HloModuleProto (xla/service/hlo.proto, xla_data.proto), of which the name is read and the
parameters of host_program_shape; the computations, which are most of it, are skipped. TorchNeuron's entries are a NEFF
alone, and JAX's and vLLM's hold no such file: of theirs no shapes are known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

FILES = ("model.hlo_module.pb", "model.hlo.pb")
"""Newer and older name of the module's file."""
LARGEST = 64 * 1024**2
"""Bytes of a signature; larger ones are none."""
LARGEST_CODE = 2 * 1024**2
"""Bytes of a module whose code is compared: about a second."""
TYPES = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 15: "c64", 16: "bf16", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn",
}  # fmt: skip
"""PrimitiveType of xla_data.proto, by the names that HLO's own text has."""
TUPLE = 13
MOST_SHOWN = 3
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NAME, _PROGRAM = 1, 4
_PARAMETERS = 1
_COMPUTATIONS, _STACK_FRAMES = 3, 17
_INSTRUCTIONS = 2
_METADATA = 7
_TYPE, _DIMENSIONS, _TUPLE_SHAPES = 2, 3, 4


class Graph(NamedTuple):
    """name: of the module, such as SyncTensorsGraph.67. inputs: such as f32[8,128], in their order."""

    name: str
    inputs: tuple[str, ...]


def graph_of(entry: Path) -> Graph | None:
    """Of an entry's folder, finished or not; None where it does not say."""
    for name in FILES:
        try:
            with (entry / name).open("rb") as file:
                return _graph(file)
        except (OSError, ValueError, IndexError):
            continue
    return None


def code_of(entry: Path) -> str | None:
    """A digest of a module without the source files and lines that its instructions came from; None where it is not
    known, or too large to look at."""
    for name in FILES:
        try:
            file = entry / name
            if file.stat().st_size <= LARGEST_CODE:
                return _code(file.read_bytes())
        except (OSError, ValueError, IndexError):
            continue
    return None


def described(graph: Graph, others: Iterable[Graph]) -> str:
    """What tells a graph's inputs from those of the nearest of others: `s64[8,64] for s64[8,128], of 31 inputs`."""
    of_all = f"{len(graph.inputs)} inputs"
    alike = (_differences(graph, each) for each in others if len(each.inputs) == len(graph.inputs))
    nearest = min(alike, key=len, default=None)
    if nearest is None:
        return f"{graph.name}: {_listed(graph.inputs)}, {of_all}"
    if not nearest:
        return f"{graph.name}: the same shapes as another graph of {of_all}"
    return f"{graph.name}: {_listed([f'{own} for {other}' for own, other in nearest])}, of {of_all}"


def _differences(one: Graph, other: Graph) -> list[tuple[str, str]]:
    return [(own, other.inputs[at]) for at, own in enumerate(one.inputs) if own != other.inputs[at]]


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(texts[:MOST_SHOWN]) + (", ..." if len(texts) > MOST_SHOWN else "")


def _graph(file: BinaryIO) -> Graph:
    """Raises ValueError and IndexError for what is no such file."""
    name, inputs = "", None
    for field, value in _stream_fields(file):
        if field == _NAME:
            name = value.decode()
        elif field == _PROGRAM:
            shapes = (content for number, content in _fields(value) if number == _PARAMETERS)
            inputs = tuple(_shape(content) for content in shapes if isinstance(content, bytes))
    if inputs is None or not name:
        raise ValueError("no module with a signature")
    return Graph(name, inputs)


def _code(module: bytes) -> str:
    found = hashlib.sha256()
    for field, value in _fields(module):
        if field == _COMPUTATIONS and isinstance(value, bytes):
            for inner, content in _fields(value):
                if inner == _INSTRUCTIONS and isinstance(content, bytes):
                    kept = [each for each in _fields(content) if each[0] != _METADATA]
                    found.update(repr(kept).encode())
                else:
                    found.update(repr((inner, content)).encode())
        elif field != _STACK_FRAMES:
            found.update(repr((field, value)).encode())
    return found.hexdigest()


def _stream_fields(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The wanted fields of the outermost message, without a read of the others."""
    while True:
        first = file.read(1)
        if not first:
            return
        tag = _read_varint(file, first)
        field, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            _read_varint(file, file.read(1))
        elif kind == _BYTES:
            size = _read_varint(file, file.read(1))
            if field in (_NAME, _PROGRAM) and size <= LARGEST:
                content = file.read(size)
                if len(content) < size:
                    raise ValueError("cut off")
                yield field, content
            else:
                file.seek(size, 1)
        elif kind in (_FIXED64, _FIXED32):
            file.seek(8 if kind == _FIXED64 else 4, 1)
        else:
            raise ValueError("no protocol buffer")


def _read_varint(file: BinaryIO, first: bytes) -> int:
    value = shift = 0
    byte = first
    while byte and shift < 64:
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7
        byte = file.read(1)
    raise ValueError("no varint")


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Each field of a message, with what it holds."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        field, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield field, value
        elif kind in (_BYTES, _FIXED64, _FIXED32):
            size, at = _varint(message, at) if kind == _BYTES else (8 if kind == _FIXED64 else 4, at)
            if at + size > len(message):
                raise ValueError("cut off")
            yield field, message[at : at + size]
            at += size
        else:
            raise ValueError("no protocol buffer")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _shape(message: bytes) -> str:
    kind = 0
    dimensions: list[int] = []
    parts: list[str] = []
    for field, value in _fields(message):
        if field == _TYPE and isinstance(value, int):
            kind = value
        elif field == _DIMENSIONS:
            dimensions += [value] if isinstance(value, int) else _packed(value)
        elif field == _TUPLE_SHAPES and isinstance(value, bytes):
            parts.append(_shape(value))
    if kind == TUPLE:
        return f"({', '.join(parts)})"
    return f"{TYPES.get(kind, f'type{kind}')}[{','.join(map(str, dimensions))}]"


def _packed(content: bytes) -> list[int]:
    found: list[int] = []
    at = 0
    while at < len(content):
        value, at = _varint(content, at)
        found.append(value)
    return found
