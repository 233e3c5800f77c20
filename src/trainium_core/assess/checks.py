"""Checks of rules that depend on the structure of code: each function returns whether a place matches.

All get the reader, which has the current place in the module, the node, the reader's result for it, and the file's
text.
"""

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

from trainium_core.assess import kinds
from trainium_core.assess.kinds import BOOL_TENSOR, HOST_INTS, INT_TENSOR, TENSOR, TENSORS
from trainium_core.assess.listener import CallSite
from trainium_core.assess.resolver import Resolver

Check = Callable[..., bool]

_MAKERS = frozenset(
    (
        "zeros",
        "ones",
        "empty",
        "full",
        "arange",
        "rand",
        "randn",
        "randint",
        "linspace",
        "eye",
        "tensor",
        "tril_indices",
    )
)
"""Functions of torch that create a tensor on the default device."""

_REDUCTIONS = frozenset(("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor"))
_PRODUCTS = frozenset(("matmul", "mm", "bmm", "dot", "mv", "einsum"))
_SCATTERS = frozenset(("scatter_add", "scatter_add_", "index_add", "index_add_", "scatter_reduce", "scatter_reduce_"))
_DECODERS = re.compile(r"generate|decode|sample|beam_search|greedy")
_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")


def host_sync(reader: Resolver, node: ast.Call, site: CallSite, *, text: str) -> bool:
    """A value that the host waits for in each pass of a loop."""
    del text
    if not reader.place.loops or reader.place.sets_up:
        return False
    if site.method in ("item", "cpu") and not site.path.startswith("torch."):
        waits = not kinds.is_host(site.receiver) and not node.args
    elif site.method in ("tolist", "numpy"):
        waits = site.receiver in TENSORS
    else:
        waits = site.path in ("builtins.float", "builtins.int", "builtins.print") and any(
            given in TENSORS for given in site.arguments
        )
    return waits and not reader.place.is_periodic


def no_device(reader: Resolver, node: ast.Call, site: CallSite, *, text: str) -> bool:
    """A tensor that a module creates on the CPU in its forward pass."""
    del node, text
    is_made = site.path == f"torch.{site.method or site.path[6:]}" and not {"device", "**", "out"} & set(site.keywords)
    return is_made and reader.place.in_forward and not reader.place.moved


def integer_reduction(reader: Resolver, node: ast.Call, site: CallSite, *, text: str) -> bool:
    """A collective operation on integers, for example on counters."""
    del reader, node, text
    return site.path.startswith("torch.distributed.") and any(
        given in (INT_TENSOR, BOOL_TENSOR, HOST_INTS) for given in site.arguments
    )


def integer_scatter(reader: Resolver, node: ast.Call, site: CallSite, *, text: str) -> bool:
    del reader, node, text
    first = site.arguments[0] if site.path.startswith("torch.") and site.arguments else site.receiver
    return first in (INT_TENSOR, BOOL_TENSOR)


def integer_product(reader: Resolver, node: ast.Call, site: CallSite, *, text: str) -> bool:
    del reader, node, text
    found = [one for one in (site.receiver, *site.arguments) if one in TENSORS]
    return bool(found) and all(one == INT_TENSOR for one in found)


def integer_topk(reader: Resolver, node: ast.Call, site: CallSite, *, text: str) -> bool:
    del reader, node, text
    return (site.method == "topk" and site.receiver == INT_TENSOR) or (
        site.path == "torch.topk" and site.arguments[:1] == [INT_TENSOR]
    )


def tensor_sort(reader: Resolver, node: ast.Call, site: CallSite, *, text: str) -> bool:
    del reader, node, text
    return site.receiver in TENSORS


def unbucketed_loader(reader: Resolver, node: ast.Call, site: CallSite, *, text: str) -> bool:
    """A training loader that keeps the last, smaller batch."""
    del reader, text
    if site.path not in _LOADERS or {"batch_sampler", "**"} & set(site.keywords):
        return False
    if _keyword_node(node, "drop_last") and _keyword(node, "drop_last") is not False:
        return False
    dataset = node.args[0] if node.args else _keyword_node(node, "dataset")
    name = ast.unparse(dataset).lower() if dataset else ""
    if re.search(r"val|test|eval", name):
        return False
    shuffles = "shuffle" in site.keywords and _keyword(node, "shuffle") is not False
    return shuffles or "sampler" in site.keywords or ("train" in name and _keyword(node, "shuffle") is not False)


def lone_loader(reader: Resolver, node: ast.Call, site: CallSite, *, text: str) -> bool:
    """A loader without workers."""
    del reader, text
    if site.path not in _LOADERS or "**" in site.keywords:
        return False
    return len(node.args) < 6 and ("num_workers" not in site.keywords or _keyword(node, "num_workers") == 0)


def one_argument_where(reader: Resolver, node: ast.Call, site: CallSite, *, text: str) -> bool:
    del reader, text
    return site.path == "torch.where" and len(node.args) == 1 and not node.keywords


def slice_update(reader: Resolver, node: ast.Call, site: CallSite, *, text: str) -> bool:
    """A method that changes part of a tensor in place, such as `x[:, 0].add_(1)`."""
    del text
    is_part = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Subscript)
    return (
        is_part
        and site.receiver == TENSOR
        and _is_trained(reader)
        and re.fullmatch(r"[a-z]\w*[a-z]_", site.method) is not None
    )


def slice_assignment(reader: Resolver, node: ast.Subscript, base: str, index: str, *, text: str) -> bool:
    del text
    is_stored = isinstance(node.ctx, ast.Store) and base == TENSOR and index != BOOL_TENSOR
    parts: Sequence[ast.expr] = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    is_part = any(isinstance(one, ast.Slice) or (isinstance(one, ast.Constant) and one.value is ...) for one in parts)
    return is_stored and is_part and _is_trained(reader)


def _is_trained(reader: Resolver) -> bool:
    """Whether a gradient may flow here: in the forward pass of a module or in a loss."""
    return reader.place.in_forward or "loss" in reader.place.function


def boolean_mask(reader: Resolver, node: ast.Subscript, base: str, index: str, *, text: str) -> bool:
    del reader, text
    return index == BOOL_TENSOR and not kinds.is_host(base) and not isinstance(node.ctx, ast.Del)


def right_shift(reader: Resolver, node: ast.BinOp, left: str, right: str, *, text: str) -> bool:
    del reader, text
    return isinstance(node.op, ast.RShift) and (left in TENSORS or right in TENSORS)


def integer_operation(reader: Resolver, node: ast.BinOp, left: str, right: str, *, text: str) -> bool:
    del reader, text
    if isinstance(node.op, ast.MatMult):
        return left == right == INT_TENSOR
    return isinstance(node.op, ast.Pow) and left == INT_TENSOR


def tensor_branch(reader: Resolver, node: ast.expr, value: str, *, text: str) -> bool:
    del node, text
    return value in TENSORS and (reader.place.loops > 0 or reader.place.in_forward)


def step_loop(reader: Resolver, node: ast.For | ast.While, *, text: str) -> bool:
    """A loop over time steps or decoded tokens."""
    del text
    if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call):
        return False
    if not isinstance(node.iter.func, ast.Name) or node.iter.func.id not in ("range", "tqdm", "trange"):
        return False
    iterated = ast.unparse(node.iter)
    if reader.place.in_forward and re.search(r"\.(shape|size)\b|seq|steps|time", iterated):
        return _calls_something_of_self(node)
    return bool(_DECODERS.search(reader.place.function)) and _calls_a_model(node)


def _calls_something_of_self(node: ast.For) -> bool:
    calls = (one for statement in node.body for one in ast.walk(statement) if isinstance(one, ast.Call))
    return any(ast.unparse(one.func).startswith("self.") for one in calls)


def _calls_a_model(node: ast.For) -> bool:
    calls = (one for statement in node.body for one in ast.walk(statement) if isinstance(one, ast.Call))
    return any(
        re.fullmatch(r"self|(self\.)?\w*(model|decoder|net|transformer|forward)", ast.unparse(one.func))
        for one in calls
    )


def unmarked_xla_loop(reader: Resolver, node: ast.For | ast.While, *, text: str) -> bool:
    """A training loop for PyTorch/XLA that never ends a graph."""
    del reader
    if re.search(r"mark_step|optimizer_step|DeviceLoader|torch_xla\.(sync|step)", text):
        return False
    calls = (one for statement in node.body for one in ast.walk(statement) if isinstance(one, ast.Call))
    return any(isinstance(one.func, ast.Attribute) and one.func.attr == "backward" for one in calls)


def _keyword_node(node: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in node.keywords if one.arg == name), None)


def _keyword(node: ast.Call, name: str) -> Any:
    found = _keyword_node(node, name)
    return found.value if isinstance(found, ast.Constant) else None


CALL_CHECKS: dict[str, list[Check]] = {}
"""Checks of calls, by the last part of the name; methods that end in an underscore also get `slice_update`."""

for _check, _names in (
    (host_sync, ("item", "cpu", "tolist", "numpy", "float", "int", "print")),
    (no_device, _MAKERS),
    (integer_reduction, _REDUCTIONS),
    (integer_scatter, _SCATTERS),
    (integer_product, _PRODUCTS),
    (integer_topk, ("topk",)),
    (tensor_sort, ("sort", "argsort", "median", "kthvalue", "msort")),
    (unbucketed_loader, ("DataLoader",)),
    (lone_loader, ("DataLoader",)),
    (one_argument_where, ("where",)),
):
    for _name in _names:
        CALL_CHECKS.setdefault(_name, []).append(_check)
