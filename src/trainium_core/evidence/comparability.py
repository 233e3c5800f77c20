"""Whether the records of two sides can be compared."""

from collections.abc import Iterator

from trainium_core.evidence.record import LAB, Comparability, Record

_STATED = ("model", "dataset_sha256", "seq", "global_batch", "steps", "warmup")
"""Fields of a workload that both sides must state and that must be equal."""
_EQUAL = ("name", "config_sha256", "tokenizer_sha256", "optimizer")
"""Fields that must be equal, or absent on both sides. Command and parallelism are not compared."""

_PRECISIONS = {
    "bf16": "16 bits",
    "bfloat16": "16 bits",
    "fp16": "16 bits",
    "float16": "16 bits",
    "fp32": "32 bits",
    "float32": "32 bits",
}


def comparable(a: Record, b: Record, *, of_cost: bool = True) -> Comparability:
    """Compare the conditions of two records.

    Args:
        a: A record.
        b: The record that it is compared with.
        of_cost: Whether the purchase option is a condition.
    """
    equal, different = list[str](), list[str]()
    for name, problem in _conditions(a, b, of_cost=of_cost):
        if problem:
            different.append(f"{name} ({problem})")
        else:
            equal.append(name)
    return Comparability(
        against=b.id,
        equal=tuple(equal),
        different=tuple(different),
        comparable=not different,
        best_of_each=tuple(_own_choices(a, b)),
    )


def _own_choices(a: Record, b: Record) -> Iterator[str]:
    """What each side states and chooses for itself, if it differs."""
    precisions = [_precision_class(record.workload.precision) for record in (a, b)]
    if None not in precisions and precisions[0] != precisions[1]:
        yield f"precision ({a.workload.precision} against {b.workload.precision})"
    tuned = [record.workload.tuned for record in (a, b)]
    if None not in tuned and tuned[0] != tuned[1]:
        yield f"tuned ({' against '.join('yes' if is_tuned else 'no' for is_tuned in tuned)})"


def _conditions(a: Record, b: Record, *, of_cost: bool) -> Iterator[tuple[str, str]]:
    """Each condition with its problem; the problem is empty if the condition is met."""
    if LAB in (a.side, b.side):
        yield "side", "the lab has no accelerators"
    for name in _STATED:
        yield name, _difference(getattr(a.workload, name), getattr(b.workload, name))
    for name in _EQUAL:
        of_a, of_b = getattr(a.workload, name), getattr(b.workload, name)
        if (of_a, of_b) != (None, None):
            yield name, _difference(of_a, of_b)
    for name in ("precision", "tuned"):
        unstated = [record.id for record in (a, b) if getattr(record.workload, name) is None]
        yield name, f"not stated by {', '.join(unstated)}" if unstated else ""
    unstated = [record.id for record in (a, b) if record.hardware.used is None or record.hardware.accelerators is None]
    yield "accelerators used", f"not stated by {', '.join(unstated)}" if unstated else ""
    if of_cost:
        yield "price basis", _difference(a.hardware.purchase, b.hardware.purchase)


def _difference(a: object, b: object) -> str:
    if a is None or b is None:
        return "not stated"
    return "" if a == b else f"{a} against {b}"


def _precision_class(name: str | None) -> str | None:
    return None if name is None else _PRECISIONS.get(name.lower(), name.lower())
