"""Checks of rules that depend on the structure of code: each function returns whether a place matches.

The arguments are the resolver, which has the file's text and the current place in it, then a call or a node. For an
expression, the values of its operands follow.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trainium_core.assess import kinds
from trainium_core.assess.kinds import BOOL_TENSOR, HOST_INTS, INT_TENSOR, TENSOR, TENSORS
from trainium_core.assess.listener import CallSite
from trainium_core.assess.resolver import NameResolver

Check = Callable[..., bool]

_REDUCTIONS = frozenset(("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor"))
_PRODUCTS = frozenset(("matmul", "mm", "bmm", "dot", "mv", "einsum"))
_SIZED = frozenset(
    [
        *("arange", "zeros", "ones", "empty", "full", "rand", "randn", "eye", "new_zeros", "new_ones", "new_empty"),
        *("new_full", "expand", "repeat", "view", "reshape", "narrow"),
    ]
)
"""Functions and methods whose arguments are sizes."""

_SCATTERS = frozenset(("scatter_add", "scatter_add_", "index_add", "index_add_", "scatter_reduce", "scatter_reduce_"))
_DECODERS = re.compile(r"generate|decode|sample|beam_search|greedy")
_MODEL = re.compile(r"self|(self\.)?\w*(model|decoder|net|transformer|forward)")
_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")


def host_sync(reader: NameResolver, site: CallSite) -> bool:
    """A value that the host waits for in each pass of a loop."""
    if not reader.place.loops or reader.place.sets_up:
        return False
    if site.method in ("item", "cpu") and not site.path.startswith("torch."):
        waits = not kinds.is_host(site.receiver) and not site.node.args
    elif site.method in ("tolist", "numpy"):
        waits = site.receiver in TENSORS
    else:
        waits = site.path in ("builtins.float", "builtins.int", "builtins.print") and any(
            value in TENSORS for value in site.arguments
        )
    return waits and not reader.place.is_periodic


def no_device(reader: NameResolver, site: CallSite) -> bool:
    """A tensor that a module creates on the CPU in its forward pass."""
    is_made = site.path == f"torch.{site.method or site.path[6:]}" and not {"device", "**", "out"} & set(site.keywords)
    return is_made and reader.place.in_forward and not reader.place.moved and not _becomes_list(reader)


def _becomes_list(reader: NameResolver) -> bool:
    """Whether the value that the current statement assigns is turned into a list, such as a list of time steps."""
    name = reader.place.target
    if not name or ".tolist()" not in reader.text:
        return False
    return re.search(rf"\b{name}(\.\w+\(\w*\))*\.tolist\(\)", reader.text) is not None


def data_shape(reader: NameResolver, site: CallSite) -> bool:
    """A shape that depends on the values of a tensor."""
    is_function = site.path.startswith("torch.") and site.path.count(".") == 1
    if is_function and not (reader.place.in_forward or {"device", "**"} & set(site.keywords)):
        return False
    if not is_function and site.receiver not in TENSORS:
        return False
    sizes = site.arguments[:1] if site.method in ("full", "new_full") else site.arguments
    return any(size in kinds.READ for size in sizes) or (
        site.method == "arange" and any(size in TENSORS for size in sizes)
    )


def integer_reduction(_reader: NameResolver, site: CallSite) -> bool:
    """A collective reduction of integers, for example of counters."""
    return site.path.startswith("torch.distributed.") and any(
        value in (INT_TENSOR, BOOL_TENSOR, HOST_INTS) for value in site.arguments
    )


def integer_scatter(_reader: NameResolver, site: CallSite) -> bool:
    first = site.arguments[0] if site.path.startswith("torch.") and site.arguments else site.receiver
    return first in (INT_TENSOR, BOOL_TENSOR)


def integer_product(_reader: NameResolver, site: CallSite) -> bool:
    tensors = {value for value in (site.receiver, *site.arguments) if value in TENSORS}
    return tensors == {INT_TENSOR}


def integer_topk(_reader: NameResolver, site: CallSite) -> bool:
    return (site.method == "topk" and site.receiver == INT_TENSOR) or (
        site.path == "torch.topk" and site.arguments[:1] == [INT_TENSOR]
    )


def tensor_sort(_reader: NameResolver, site: CallSite) -> bool:
    return site.receiver in TENSORS


def partial_batch_loader(_reader: NameResolver, site: CallSite) -> bool:
    """A training loader that keeps the last, smaller batch."""
    if site.path not in _LOADERS or {"batch_sampler", "**"} & set(site.keywords):
        return False
    keeps = _keyword(site.node, "drop_last") is False
    if _keyword_node(site.node, "drop_last") and not keeps:
        return False
    dataset = site.node.args[0] if site.node.args else _keyword_node(site.node, "dataset")
    name = ast.unparse(dataset).lower() if dataset else ""
    if re.search(r"val|test|eval", name):
        return False
    shuffles = "shuffle" in site.keywords and _keyword(site.node, "shuffle") is not False
    # Without shuffling, drop_last=False is a decision, for example of a loader that extracts features.
    return shuffles or (
        not keeps and ("sampler" in site.keywords or ("train" in name and _keyword(site.node, "shuffle") is not False))
    )


def lone_loader(_reader: NameResolver, site: CallSite) -> bool:
    """A loader without worker processes."""
    if site.path not in _LOADERS or "**" in site.keywords:
        return False
    return len(site.node.args) < 6 and ("num_workers" not in site.keywords or _keyword(site.node, "num_workers") == 0)


def one_argument_where(_reader: NameResolver, site: CallSite) -> bool:
    return site.path == "torch.where" and len(site.node.args) == 1 and not site.node.keywords


def relative_save(reader: NameResolver, site: CallSite) -> bool:
    """A call of torch.save with a relative path, except in the folders of jobs."""
    given = [*site.node.args[1:2], *(keyword.value for keyword in site.node.keywords if keyword.arg == "f")]
    if site.path != "torch.save" or not given:
        return False
    start = _path_start(given[0], reader.text)
    return bool(start) and not start.startswith(("/", "~", "../")) and "://" not in start


def _path_start(node: ast.expr, text: str) -> str:
    """The start of a path, if it is a literal or a variable with a literal value in the file; otherwise empty."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.Name):
        found = re.search(rf"^{node.id}\s*=\s*(['\"])(.*?)\1", text, re.MULTILINE)
        return found[2] if found else ""
    first: ast.expr | None = None
    if isinstance(node, ast.JoinedStr):
        first = node.values[0] if node.values else None
    elif isinstance(node, ast.FormattedValue):
        first = node.value
    elif isinstance(node, ast.BinOp):
        first = node.left
    elif isinstance(node, ast.Call) and re.fullmatch(r"(.*\.)?(join|Path)", ast.unparse(node.func)):
        first = node.args[0] if node.args else None
    return _path_start(first, text) if first is not None else ""


def slice_update(reader: NameResolver, site: CallSite) -> bool:
    """A method that changes part of a tensor in place, such as `x[:, 0].add_(1)`."""
    is_part = isinstance(site.node.func, ast.Attribute) and isinstance(site.node.func.value, ast.Subscript)
    return (
        is_part
        and site.receiver == TENSOR
        and _is_trained(reader)
        and re.fullmatch(r"[a-z]\w*[a-z]_", site.method) is not None
    )


def slice_assignment(reader: NameResolver, node: ast.Subscript, base: str, index: str) -> bool:
    is_stored = isinstance(node.ctx, ast.Store) and base == TENSOR and index != BOOL_TENSOR
    parts: Sequence[ast.expr] = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    is_part = any(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is ...) for part in parts
    )
    return is_stored and is_part and _is_trained(reader)


def _is_trained(reader: NameResolver) -> bool:
    """Whether a gradient may flow here: in the forward pass of a module or in a loss."""
    return reader.place.in_forward or "loss" in reader.place.function


def boolean_mask(_reader: NameResolver, node: ast.Subscript, base: str, index: str) -> bool:
    return index == BOOL_TENSOR and not kinds.is_host(base) and not isinstance(node.ctx, ast.Del)


def data_slice(_reader: NameResolver, node: ast.Subscript, base: str, index: str) -> bool:
    """A part of a tensor whose size depends on the values of a tensor."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return index in kinds.READ and base in TENSORS and any(isinstance(part, ast.Slice) for part in parts)


def right_shift(_reader: NameResolver, node: ast.BinOp, left: str, right: str) -> bool:
    return isinstance(node.op, ast.RShift) and (left in TENSORS or right in TENSORS)


def integer_operation(_reader: NameResolver, node: ast.BinOp, left: str, right: str) -> bool:
    if isinstance(node.op, ast.MatMult):
        return left == right == INT_TENSOR
    return isinstance(node.op, ast.Pow) and left == INT_TENSOR


def tensor_branch(reader: NameResolver, _node: ast.expr, value: str) -> bool:
    return value in TENSORS and (reader.place.loops > 0 or reader.place.in_forward)


def step_loop(reader: NameResolver, node: ast.For | ast.While) -> bool:
    """A loop over time steps or decoded tokens."""
    if isinstance(node, ast.While):
        calls_own = reader.place.in_forward and any(name.startswith("self.") for name in _calls_in(node))
        decodes = bool(_DECODERS.search(reader.place.function)) and any(map(_MODEL.fullmatch, _calls_in(node)))
        return calls_own or decodes
    if not isinstance(node.iter, ast.Call):
        return False
    if not isinstance(node.iter.func, ast.Name) or node.iter.func.id not in ("range", "tqdm", "trange"):
        return False
    iterated = ast.unparse(node.iter)
    if reader.place.in_forward and re.search(r"\.(shape|size)\b|seq|steps|time", iterated):
        return any(name.startswith("self.") for name in _calls_in(node))
    return bool(_DECODERS.search(reader.place.function)) and any(map(_MODEL.fullmatch, _calls_in(node)))


def _calls_in(node: ast.For | ast.While) -> Iterator[str]:
    """The names of the functions that the body of a loop calls."""
    for statement in node.body:
        yield from (ast.unparse(call.func) for call in ast.walk(statement) if isinstance(call, ast.Call))


def unmarked_xla_loop(reader: NameResolver, node: ast.For | ast.While) -> bool:
    """A training loop, in a file for PyTorch/XLA without any call that ends the graph of a step."""
    if re.search(r"mark_step|optimizer_step|DeviceLoader|torch_xla\.(sync|step)", reader.text):
        return False
    return any(name.endswith(".backward") for name in _calls_in(node))


def _keyword_node(node: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in node.keywords if keyword.arg == name), None)


def _keyword(node: ast.Call, name: str) -> Any:
    value = _keyword_node(node, name)
    return value.value if isinstance(value, ast.Constant) else None


CALL_CHECKS: dict[str, list[Check]] = {}
"""Checks of calls, by the last part of the name; methods that end in an underscore also get `slice_update`."""

for _check, _names in (
    (host_sync, ("item", "cpu", "tolist", "numpy", "float", "int", "print")),
    (no_device, kinds.NAMES["made_on_default_device"]),
    (data_shape, _SIZED),
    (integer_reduction, _REDUCTIONS),
    (integer_scatter, _SCATTERS),
    (integer_product, _PRODUCTS),
    (integer_topk, ("topk",)),
    (tensor_sort, ("sort", "argsort", "median", "kthvalue", "msort")),
    (partial_batch_loader, ("DataLoader",)),
    (lone_loader, ("DataLoader",)),
    (one_argument_where, ("where",)),
    (relative_save, ("save",)),
):
    for _name in _names:
        CALL_CHECKS.setdefault(_name, []).append(_check)
