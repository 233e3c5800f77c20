"""Checks of a checkpoint for import into Amazon Bedrock, and the role that an import needs."""

import json
import struct
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from trainium_core.facts import DATA
from trainium_core.plurals import count

CONFIG, INDEX, ADAPTER = "config.json", "model.safetensors.index.json", "adapter_config.json"
TOKENIZERS = ("tokenizer.json", "tokenizer.model")
TOKENIZER_CONFIG = "tokenizer_config.json"

_GB = 10**9
_USUAL_DTYPES = ("F32", "F16", "BF16")
_HEADER_LENGTH = 8
_LARGEST_HEADER = 100 * 2**20


@dataclass(frozen=True, kw_only=True)
class CheckpointFinding:
    """The result of a check.

    Attributes:
        status: "pass"; "fail": imports do not support the checkpoint; "look": unclear.
    """

    check: str
    status: Literal["pass", "fail", "look"]
    message: str


class Checkpoint(Protocol):
    """The files of a checkpoint. Files in subfolders are not part of it.

    Attributes:
        sizes: The size of each file in bytes, by its name.
    """

    sizes: Mapping[str, int]

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file.

        Args:
            name: Name of the file.
            start: The first byte.
            length: The largest number of bytes; None, only for a start of 0: all.

        Raises:
            OSError: A local file cannot be read.
            UnavailableError: A file in S3 cannot be read.
        """
        ...


class CheckpointFolder:
    """A checkpoint in a folder. Implements Checkpoint.

    Raises:
        OSError: The folder cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.sizes: Mapping[str, int] = {file.name: file.stat().st_size for file in folder.iterdir() if file.is_file()}

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        with (self._folder / name).open("rb") as file:
            file.seek(start)
            return file.read() if length is None else file.read(length)


def check_checkpoint(checkpoint: Checkpoint, region: str) -> Sequence[CheckpointFinding]:
    """The results of all checks of a checkpoint for an import in a region.

    Raises:
        OSError: A local file cannot be read.
        UnavailableError: A file in S3 cannot be read.
    """
    config = _json_of(checkpoint, CONFIG)
    weights = {name: size for name, size in sorted(checkpoint.sizes.items()) if name.endswith(".safetensors")}
    return [
        *_region(region),
        *_architecture(config, region),
        *_context(config),
        *_versions(config),
        *_adapter(checkpoint),
        *_files(checkpoint, weights),
        *_tensors(checkpoint, weights),
        *_size(config, weights),
        *_tokenizer(checkpoint),
    ]


@cache
def import_facts() -> Mapping[str, Any]:
    """The facts of data/evidence/bedrock.toml."""
    return tomllib.loads((DATA / "evidence" / "bedrock.toml").read_text(encoding="utf-8"))


def trust_policy(account: str, region: str) -> Mapping[str, Any]:
    """The trust policy of an import's role: Bedrock may assume it for the account's import jobs in the region."""
    jobs = f"arn:aws:bedrock:{region}:{account}:model-import-job/*"
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "bedrock.amazonaws.com"},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"aws:SourceAccount": account}, "ArnEquals": {"aws:SourceArn": jobs}},
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


def role_policy(bucket: str, prefix: str, account: str) -> Mapping[str, Any]:
    """The permissions of the role: list the bucket and read the checkpoint.

    AWS does not document which prefix an import lists, so s3:ListBucket is not limited to a prefix.
    """
    owner = {"StringEquals": {"aws:ResourceAccount": account}}
    statements = [
        {
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": f"arn:aws:s3:::{bucket}/{prefix}*",
            "Condition": owner,
        },
        {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": f"arn:aws:s3:::{bucket}", "Condition": owner},
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def _passed(check: str, message: str) -> CheckpointFinding:
    return CheckpointFinding(check=check, status="pass", message=message)


def _failed(check: str, message: str) -> CheckpointFinding:
    return CheckpointFinding(check=check, status="fail", message=message)


def _unclear(check: str, message: str) -> CheckpointFinding:
    return CheckpointFinding(check=check, status="look", message=message)


def _region(region: str) -> Iterator[CheckpointFinding]:
    regions = import_facts()["regions"]
    if region in regions:
        yield _passed("region", f"{region} supports model import")
    else:
        yield _failed("region", f"{region} does not support model import: choose one of {', '.join(regions)}")


def _architecture(config: Mapping[str, Any] | None, region: str) -> Iterator[CheckpointFinding]:
    if config is None:
        yield _failed("architecture", f"{CONFIG} is missing or not a JSON object")
        return
    known: Mapping[str, Mapping[str, Any]] = import_facts()["architectures"]
    model_type = str(config.get("model_type"))
    if model_type not in known:
        yield _failed("architecture", f"model_type {model_type} is not supported; supported: {', '.join(known)}")
        return
    only = known[model_type].get("regions")
    if only is not None and region not in only:
        yield _failed("architecture", f"{known[model_type]['name']} is supported in {', '.join(only)} only")
    else:
        yield _passed("architecture", str(known[model_type]["name"]))


def _context(config: Mapping[str, Any] | None) -> Iterator[CheckpointFinding]:
    longest = import_facts()["longest_context"]
    length = _of_text(config, "max_position_embeddings")
    if not isinstance(length, int):
        yield _unclear("context", f"{CONFIG} has no max_position_embeddings: at most {longest:,} tokens are supported")
    elif length > longest:
        yield _failed("context", f"{length:,} tokens; at most {longest:,} are supported")
    else:
        yield _passed("context", f"{length:,} tokens")


def _of_text(config: Mapping[str, Any] | None, key: str) -> Any:
    """A value of the model, or of the text part of a multimodal model."""
    part = (config or {}).get("text_config")
    inner = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    return (config or {}).get(key, inner.get(key))


def _versions(config: Mapping[str, Any] | None) -> Iterator[CheckpointFinding]:
    newest, written = import_facts()["transformers"], str((config or {}).get("transformers_version", ""))
    if not written:
        yield _unclear("transformers", f"{CONFIG} has no transformers_version: imports use {newest}")
    elif _numbers(written) > _numbers(newest):
        yield _unclear("transformers", f"written by {written}, and imports use {newest}: newer settings may be unknown")
    else:
        yield _passed("transformers", f"written by {written}, imports use {newest}")
    if "quantization_config" in (config or {}):
        yield _unclear("quantization", "no source says that imports support quantised weights")


def _numbers(text: str) -> tuple[int, ...]:
    """The numeric parts of a version before the first part that is not a number."""
    parts = list[int]()
    for part in text.split("."):
        if not part.isdecimal():
            break
        parts.append(int(part))
    return tuple(parts)


def _adapter(checkpoint: Checkpoint) -> Iterator[CheckpointFinding]:
    if ADAPTER in checkpoint.sizes:
        yield _failed("adapter", f"{ADAPTER}: merge the adapter into the model, and save the whole model")


def _files(checkpoint: Checkpoint, weights: Mapping[str, int]) -> Iterator[CheckpointFinding]:
    """Whether the weight files are complete: all files that the index names, and no others."""
    if not weights:
        others = sorted(name for name in checkpoint.sizes if name.endswith((".bin", ".pt", ".pth", ".gguf")))
        hint = f"; found {', '.join(others[:4])}: save with safe_serialization=True" if others else ""
        yield _failed("weights", f"no *.safetensors{hint}")
        return
    index = _json_of(checkpoint, INDEX)
    if index is None:
        if len(weights) > 1 or INDEX in checkpoint.sizes:
            yield _failed("weights", f"{count(len(weights), 'file')}, and {INDEX} is missing or not a JSON object")
        else:
            yield _passed("weights", next(iter(weights)))
        return
    mapped: Any = index.get("weight_map")
    if not isinstance(mapped, dict) or not isinstance(index.get("metadata"), dict):
        yield _failed("weights", f"{INDEX} lacks metadata or weight_map")
        return
    named = set(map(str, cast("dict[str, Any]", mapped).values()))
    missing, extra = sorted(named - weights.keys()), sorted(weights.keys() - named)
    if missing:
        yield _failed("weights", f"{INDEX} names files that are missing: {', '.join(missing[:4])}")
    if extra:
        yield _failed("weights", f"{INDEX} does not name {', '.join(extra[:4])}")
    if not missing and not extra:
        yield _passed("weights", f"{count(len(weights), 'file')}, named in the index")


def _tensors(checkpoint: Checkpoint, weights: Mapping[str, int]) -> Iterator[CheckpointFinding]:
    dtypes, broken = set[str](), list[str]()
    for name, size in weights.items():
        file_dtypes = _dtypes(checkpoint, name, size)
        if file_dtypes is None:
            broken.append(name)
        else:
            dtypes |= file_dtypes
    unusual = sorted(dtypes - {*_USUAL_DTYPES})
    if broken:
        yield _failed("tensors", f"truncated, or not safetensors: {', '.join(broken[:4])}")
    if unusual:
        yield _unclear("tensors", f"{', '.join(unusual)}: no source says whether imports support this type")
    if dtypes and not broken and not unusual:
        yield _passed("tensors", ", ".join(sorted(dtypes)))


def _dtypes(checkpoint: Checkpoint, name: str, size: int) -> set[str] | None:
    """The types of the tensors in a file; None if it is not a complete safetensors file."""
    start = checkpoint.read(name, 0, _HEADER_LENGTH) if size >= _HEADER_LENGTH else b""
    length = struct.unpack("<Q", start)[0] if len(start) == _HEADER_LENGTH else 0
    fits = 0 < length <= min(_LARGEST_HEADER, size - _HEADER_LENGTH)
    header = checkpoint.read(name, _HEADER_LENGTH, length) if fits else b""
    try:
        tensors = json.loads(header)
        rows = [row for name, row in tensors.items() if name != "__metadata__"]
        end = max((int(row["data_offsets"][1]) for row in rows), default=0)
        dtypes = {str(row["dtype"]) for row in rows}
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError, IndexError, OverflowError):
        return None
    return dtypes if size == _HEADER_LENGTH + length + end else None


def _size(config: Mapping[str, Any] | None, weights: Mapping[str, int]) -> Iterator[CheckpointFinding]:
    row: Mapping[str, Any] = import_facts()["architectures"].get(str((config or {}).get("model_type")), {})
    limit = import_facts()["largest_multimodal_gb" if row.get("multimodal") else "largest_gb"]
    size = sum(weights.values())
    if size >= limit * _GB:
        yield _failed("size", f"{size / _GB:.1f} GB of weights; they must be smaller than {limit} GB")
    elif weights:
        yield _passed("size", f"{size / _GB:.2f} GB of weights; the limit is {limit} GB")


def _tokenizer(checkpoint: Checkpoint) -> Iterator[CheckpointFinding]:
    there = [name for name in TOKENIZERS if name in checkpoint.sizes]
    missing = [] if TOKENIZER_CONFIG in checkpoint.sizes else [TOKENIZER_CONFIG]
    missing += [] if there else [" or ".join(TOKENIZERS)]
    if missing:
        yield _failed("tokenizer", f"missing: {', '.join(missing)}")
    else:
        yield _passed("tokenizer", ", ".join((*there, TOKENIZER_CONFIG)))


def _json_of(checkpoint: Checkpoint, name: str) -> Mapping[str, Any] | None:
    """The JSON object in a file; None if the file is missing or contains anything else."""
    if name not in checkpoint.sizes:
        return None
    try:
        document = json.loads(checkpoint.read(name))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", document) if isinstance(document, dict) else None
