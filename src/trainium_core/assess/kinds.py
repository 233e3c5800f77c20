"""The value of an expression as far as its text determines it: a qualified name, an instance of a class, or a kind of
value.

A value is a string: `torch.cuda.is_available` is that function, `torch.nn.Linear()` is an instance of that class, and
`<tensor>` is a kind of value.
"""

import tomllib
from collections.abc import Mapping, Sequence

from trainium_core.facts import DATA

UNKNOWN = ""
TENSOR = "<tensor>"
INT_TENSOR = "<integer tensor>"
BOOL_TENSOR = "<boolean tensor>"
ARRAY = "<array>"
HOST_TENSOR = "<tensor on the host>"
HOST_INTS = "<integer tensor on the host>"
PYTHON = "<python>"
INT = "<int>"
INTS = "<ints>"
COUNT = "<int from a tensor>"
NUMBER = "<number from a tensor>"
SELF = "<self>"

TENSORS = frozenset((TENSOR, INT_TENSOR, BOOL_TENSOR))
"""Tensors that are not known to be on the host."""

HOST_TENSORS = frozenset((HOST_TENSOR, HOST_INTS))
ARRAYS = frozenset((ARRAY, *HOST_TENSORS))
"""Arrays, and tensors on the host."""

READ = frozenset((COUNT, NUMBER))
"""Numbers that were read from a tensor."""

GUARD = "torch.cuda.is_available()"
"""The value of a condition that is true on CUDA only."""

LONGEST = 160
"""Maximum length of a value; a longer chain of attributes and calls is unknown."""

_TORCH = tomllib.loads((DATA / "assess" / "torch.toml").read_text(encoding="utf-8"))

NAMES: Mapping[str, frozenset[str]] = {key: frozenset(names) for key, names in _TORCH.items()}
"""Names of torch and of other libraries, by what is known about their results."""

ARRAY_LIBRARIES, MODULE_CLASSES = NAMES["array_libraries"], NAMES["module_classes"]
MAKERS = frozenset(f"torch.{name}" for name in NAMES["made_on_default_device"] | NAMES["made_on_host"])
"""Functions that create a tensor: on the host, unless they get a device or the code sets a default device."""

_INTEGER_TYPES = frozenset(
    f"torch.{name}"
    for name in ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int", "long", "short"]
)

UNKNOWN_RECEIVERS = {"numpy": ARRAY, "cpu": HOST_TENSOR, "detach": TENSOR, "long": INT_TENSOR, "eq": BOOL_TENSOR}
"""The results of methods, by name, if the object is unknown."""


def is_host(value: str) -> bool:
    """Whether a value is on the host: an array, a tensor on the host, a Python value, or from an array library."""
    return (
        value in ARRAYS or value in (PYTHON, INT, INTS) or value in READ or value.partition(".")[0] in ARRAY_LIBRARIES
    )


def attribute_kind(kind: str, name: str) -> str:
    """The value of an attribute of a value in angle brackets."""
    if kind in TENSORS:
        if name in NAMES["host_attributes"]:
            return PYTHON
        return kind if name in ("data", "T", "mT", "H", "real", "imag", "grad", "values", "indices") else UNKNOWN
    return kind if kind in ARRAYS else UNKNOWN


def method_result(kind: str, method: str, arguments: Sequence[str]) -> str:
    """The result of a method of a tensor or array."""
    if kind in ARRAYS:
        if method in ("to", "cuda", "type_as"):
            return INT_TENSOR if kind == HOST_INTS else TENSOR
        return ARRAY if method == "numpy" else kind if kind != HOST_INTS or method in NAMES["keeping"] else HOST_TENSOR
    if method == "numpy":
        return ARRAY
    if method == "cpu":
        return on_host(kind)
    if method in NAMES["host_methods"] and not (method == "type" and arguments):  # type(dtype) returns a tensor.
        return PYTHON
    if method in ("items", "keys", "values", "get", "pop"):  # Methods of a dictionary: the kind is wrong.
        return UNKNOWN
    if method == "item":
        return COUNT if kind in (INT_TENSOR, BOOL_TENSOR) else NUMBER
    if method in ("to", "type", "new_tensor", "new_zeros", "new_ones", "new_full"):
        return _by_type(arguments) or kind
    return _by_name(method, kind) or TENSOR if kind == TENSOR else _by_name(method, kind) or kind


def on_host(kind: str) -> str:
    """The kind of a tensor once it is on the host; other values are returned unchanged."""
    return HOST_INTS if kind in (INT_TENSOR, BOOL_TENSOR) else HOST_TENSOR if kind in TENSORS else kind


def torch_result(path: str, arguments: Sequence[str], dtype: str) -> str:
    """The result of a call of a torch function."""
    parts = path.split(".")
    name = parts[-1]
    if name.endswith("Tensor"):
        return INT_TENSOR if name in ("LongTensor", "IntTensor", "ShortTensor") else TENSOR
    is_plain = len(parts) == 2 or parts[1] in ("linalg", "fft", "special", "functional") or parts[-2] == "functional"
    if not is_plain or name in NAMES["not_one_tensor"] or name[:1].isupper():
        return f"{path}()"
    if dtype:
        return _by_type((dtype,)) or TENSOR
    if name in ("tensor", "as_tensor", "full", "scalar_tensor"):
        content = arguments[-1] if name == "full" and arguments else arguments[0] if arguments else UNKNOWN
        return INT_TENSOR if content in (INT, INTS, COUNT) else content if content in TENSORS else TENSOR
    if name == "arange":
        return INT_TENSOR if arguments and all(argument == INT for argument in arguments) else TENSOR
    first = next((argument for argument in arguments if argument in TENSORS), TENSOR)
    return _by_name(name, first) or (first if name in ("cat", "stack", "where", "clamp", "zeros_like") else TENSOR)


def _by_name(name: str, kind: str) -> str:
    if name in NAMES["boolean"]:
        return BOOL_TENSOR
    if name in NAMES["integer"]:
        return INT_TENSOR
    if name in NAMES["floating"]:
        return TENSOR
    if name in NAMES["sums"] and kind in (BOOL_TENSOR, INT_TENSOR):
        return INT_TENSOR
    return UNKNOWN


def _by_type(arguments: Sequence[str]) -> str:
    for argument in arguments:
        if argument in _INTEGER_TYPES:
            return INT_TENSOR
        if argument == "torch.bool":
            return BOOL_TENSOR
        if argument.startswith(("torch.float", "torch.bfloat", "torch.half", "torch.double", "torch.complex")):
            return TENSOR
    return UNKNOWN


def combined(left: str, right: str, *, divides: bool = False) -> str:
    """The result of an arithmetic operation on two values."""
    both = (left, right)
    if left in TENSORS or right in TENSORS:
        are_integers = all(value in (INT_TENSOR, BOOL_TENSOR, INT) for value in both)
        if are_integers and left == right == BOOL_TENSOR:
            return BOOL_TENSOR
        return INT_TENSOR if are_integers and not divides else TENSOR
    if ARRAYS.intersection(both):
        return HOST_TENSOR if HOST_TENSORS.intersection(both) else ARRAY
    if left == right == INT:
        return PYTHON if divides else INT
    if READ.intersection(both) and all(value in READ or value in (PYTHON, INT) for value in both):
        return COUNT if not divides and all(value in (INT, COUNT) for value in both) else NUMBER
    return PYTHON if all(value in (PYTHON, INT) for value in both) else UNKNOWN


def compared(values: Sequence[str]) -> str:
    """The result of a comparison of values."""
    if any(value in TENSORS for value in values):
        return BOOL_TENSOR
    if ARRAYS.intersection(values):
        return ARRAY
    return PYTHON if any(value in (PYTHON, INT) or value in READ for value in values) else UNKNOWN
