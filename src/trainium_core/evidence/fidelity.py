"""How close the results of a side are to a reference: loss curves, and logits against the error of bf16."""

import math
import struct
from ast import literal_eval
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainium_core.evidence.record import MET, NOT_MEASURED, NOT_MET, Fidelity

LOSS_CURVES = "largest relative difference of the losses of a step, same seed"
LOGITS = "error against fp32 in units of the error of bf16 on the reference"

_MAGIC = b"\x93NUMPY"
_TYPES: Mapping[str, tuple[str, int]] = {"<f4": ("f", 4), "<f8": ("d", 8)}

Curve = Sequence[tuple[int, float]]


class FidelityError(ValueError):
    """Logits that cannot be compared. The message is a sentence without a period."""


def loss_fidelity(
    curves: Mapping[int, Curve], references: Mapping[int, Curve], reference: str, limit: float
) -> tuple[Fidelity, tuple[str, ...]]:
    """Compare loss curves by seed, at the steps that both have.

    Returns:
        The comparison, and warnings about it.
    """
    shared = [
        (ours, theirs)
        for seed, curve in curves.items()
        for step, ours in curve
        if (theirs := dict(references.get(seed, ())).get(step)) is not None
    ]
    if not shared:
        return _result(LOSS_CURVES, reference, None, limit), ()
    value = max(abs(ours - theirs) / max(abs(theirs), 1e-12) for ours, theirs in shared)
    same = ("the losses equal those of the reference in every digit: was the reference compared with itself?",)
    return _result(LOSS_CURVES, reference, value, limit), () if value else same


def logits_fidelity(logits: Path, fp32: Path, bf16: Path, limit: float) -> Fidelity:
    """The norm of the error against fp32, divided by the norm of the error of bf16 on the reference.

    Raises:
        FidelityError: A file is not a .npy file of finite float32 or float64 numbers in C order, or the files cannot be
            compared.
        OSError: A file cannot be read.
    """
    numbers, exact, rounded = (_numbers(path) for path in (logits, fp32, bf16))
    if not len(numbers) == len(exact) == len(rounded):
        raise FidelityError(
            f"{logits.name} has {len(numbers)} numbers, and the reference {len(exact)} and {len(rounded)}"
        )
    bf16_error = math.dist(rounded, exact)
    if not bf16_error:
        raise FidelityError(f"{bf16.name} and {fp32.name} are equal, so the error of bf16 is unknown")
    value = math.dist(numbers, exact) / bf16_error
    return _result(LOGITS, fp32.name, value if math.isfinite(value) else None, limit)


def _result(method: str, reference: str, value: float | None, limit: float) -> Fidelity:
    state = NOT_MEASURED if value is None else MET if value <= limit else NOT_MET
    return Fidelity(method=method, reference=reference, value=value, limit=limit, state=state)


def _numbers(path: Path) -> tuple[float, ...]:
    """The numbers of a .npy file. The format is described in numpy.lib.format."""
    content = path.read_bytes()
    if content[:6] != _MAGIC or len(content) < 12:
        raise FidelityError(f"{path.name} is not a .npy file")
    start, form = (10, "<H") if content[6] == 1 else (12, "<I")
    (length,) = struct.unpack_from(form, content, 8)
    try:
        header = literal_eval(content[start : start + length].decode())
        data = content[start + length :]
        code, size = _TYPES[header["descr"]]
        numbers: tuple[float, ...] = struct.unpack(f"<{len(data) // size}{code}", data)
    except (ValueError, KeyError, TypeError, SyntaxError, struct.error) as error:
        raise FidelityError(f"{path.name} is not a .npy file of float32 or float64: {error}") from error
    if header.get("fortran_order"):
        raise FidelityError(f"{path.name} is in Fortran order: save it with numpy.ascontiguousarray")
    if not all(map(math.isfinite, numbers)):
        raise FidelityError(f"{path.name} has numbers that are not finite")
    return numbers
