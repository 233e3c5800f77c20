"""All that is held, as bytes, and back. They are a pickle: to load them is to run them."""

import importlib
import io
import marshal
import pickle
import pickletools
import sys
import threading
import weakref
import zlib
from collections import defaultdict
from collections.abc import Iterator
from types import CellType, FunctionType
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_der_private_key
from moto.core.base_backend import BackendDict
from moto.core.model_instances import reset_model_data
from moto.ec2.models import EC2Backend
from moto.logs.models import LogEvent, LogStream
from moto.s3.models import s3_backends

from trainium_local.kept import contents, kept, restore
from trainium_local.resources import api, registry

# Protocol 4 and later put the opcodes into frames, whose lengths would have to be kept when a text is replaced.
_PROTOCOL = 3
_COUNTERS = ((LogEvent, "_event_id"), (LogStream, "_log_ids"))
_LOCKS = {type(threading.Lock()): threading.Lock, type(threading.RLock()): threading.RLock}

kept("moto: accounts of buckets", s3_backends.bucket_accounts)
for _name in ("vpc_refs", "vpc_pcx_refs", "backend_refs"):  # where backends of different regions find each other
    kept(f"moto: {_name}", getattr(EC2Backend, _name))


def take() -> bytes:
    """The endpoint in a line of its own, and then everything. Nothing may change meanwhile."""
    everything = {
        "moto": {name: {account: dict(_regions(known)) for account, known in one.items()} for name, one in _in_use()},
        "kept": contents(),
        "counters": [getattr(owner, name) for owner, name in _COUNTERS],
    }
    pickled = io.BytesIO()
    _Pickler(pickled, _PROTOCOL).dump(everything)
    return api.endpoint().encode() + b"\n" + zlib.compress(pickled.getvalue(), 1)


def load(snapshot: bytes) -> None:
    """Put what `take` gave in place of everything. What cannot be read raises before anything is changed."""
    endpoint, _, compressed = snapshot.partition(b"\n")
    pickled = zlib.decompress(compressed)
    if endpoint.decode() != api.endpoint():
        pickled = _with_endpoint(pickled, endpoint.decode(), api.endpoint())
    everything = pickle.loads(pickled)
    found = [(_by_name(*name), accounts) for name, accounts in everything["moto"].items()]
    for backends in _all_backends():
        backends.clear()
    reset_model_data()
    for backends, accounts in found:
        for account, regions in accounts.items():
            backends[account].update(regions)
    restore(everything["kept"])
    for (owner, name), value in zip(_COUNTERS, everything["counters"], strict=True):
        setattr(owner, name, max(value, getattr(owner, name)))


def _all_backends() -> list[Any]:
    return list(vars(BackendDict)["_instances"])


def _in_use() -> Iterator[tuple[tuple[str, str], Any]]:
    for backends in _all_backends():
        module: Any = sys.modules[backends.backend.__module__]
        for name, value in vars(module).items():
            if value is backends:
                yield (module.__name__, name), backends


def _regions(backends: Any) -> Iterator[tuple[str, Any]]:
    # moto makes the global backends of all partitions as soon as it looks for an access key
    return ((name, backend) for name, backend in backends.items() if not name.startswith("aws-"))


def _by_name(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _with_endpoint(pickled: bytes, old: str, new: str) -> bytes:
    """With the new endpoint in every text, e.g. the URLs of queues and wait conditions; bytes stay as they are."""
    pieces, copied = list[bytes](), 0
    for opcode, text, position in pickletools.genops(pickled):
        if opcode.name == "BINUNICODE" and isinstance(text, str) and old in text:
            replaced = text.replace(old, new).encode("utf-8", "surrogatepass")
            pieces += [pickled[copied:position], b"X", len(replaced).to_bytes(4, "little"), replaced]
            assert position is not None
            copied = position + 5 + len(text.encode("utf-8", "surrogatepass"))
    return b"".join([*pieces, pickled[copied:]])


class _Pickler(pickle.Pickler):
    """With a way for what moto's and our objects hold beside data."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._provisioners = {id(one): name for name, one in [*registry._types.items(), ("", registry._fallback[0])]}

    def reducer_override(self, obj: Any) -> Any:
        kind: Any = type(obj)
        if kind in _LOCKS:
            return _LOCKS[kind], ()
        if id(obj) in self._provisioners:
            return _provisioner, (self._provisioners[id(obj)],)
        if kind is FunctionType and "<" in obj.__qualname__:
            cells = tuple(cell.cell_contents for cell in obj.__closure__ or ())
            return _function, (obj.__module__, marshal.dumps(obj.__code__), obj.__name__, obj.__defaults__, cells)
        if isinstance(obj, threading.Thread):  # it has ended
            return type(None), ()
        if kind is weakref.ref:
            return weakref.ref, (set() if obj() is None else obj(),)
        if kind is weakref.WeakValueDictionary:
            return kind, (dict(obj),)
        if issubclass(kind, defaultdict) and kind is not defaultdict:
            return _default_dict, (kind, obj.default_factory), vars(obj), None, iter(dict.items(obj))
        if hasattr(obj, "private_bytes"):
            der = obj.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
            return _private_key, (der,)
        return NotImplemented


def _provisioner(name: str) -> Any:
    return registry._types.get(name) or registry._fallback[0]


def _function(module: str, code: bytes, name: str, defaults: Any, cells: tuple[Any, ...]) -> FunctionType:
    return FunctionType(
        marshal.loads(code), vars(importlib.import_module(module)), name, defaults, tuple(map(CellType, cells))
    )


def _private_key(der: bytes) -> Any:
    return load_der_private_key(der, None)


def _default_dict(kind: Any, factory: Any) -> Any:
    made = kind.__new__(kind)
    defaultdict.__init__(made, factory)
    return made
