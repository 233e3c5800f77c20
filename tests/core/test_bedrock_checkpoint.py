"""Checkpoints for Bedrock's model import: files and settings that imports do not support are found."""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from trainium_core.evidence.bedrock import (
    Checkpoint,
    CheckpointFolder,
    check_checkpoint,
    import_facts,
    role_policy,
    trust_policy,
)

CONFIG: Mapping[str, Any] = {
    "model_type": "llama",
    "max_position_embeddings": 8192,
    "transformers_version": "4.45.0",
}


def safetensors(dtype: str = "BF16") -> bytes:
    header = json.dumps({"__metadata__": {"format": "pt"}, "w": {"dtype": dtype, "shape": [2], "data_offsets": [0, 4]}})
    return struct.pack("<Q", len(header)) + header.encode() + b"\0" * 4


def index(*files: str) -> str:
    return json.dumps({"metadata": {"total_size": 4}, "weight_map": {f"w{at}": name for at, name in enumerate(files)}})


def write_checkpoint(folder: Path) -> Path:
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "model.safetensors").write_bytes(safetensors())
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text("{}")
    return folder


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path)


def not_passed(source: Path | Checkpoint, region: str = "us-east-1") -> Sequence[tuple[str, str]]:
    findings = check_checkpoint(CheckpointFolder(source) if isinstance(source, Path) else source, region)
    return [(finding.check, finding.status) for finding in findings if finding.status != "pass"]


def test_whole_checkpoint_passes(checkpoint: Path) -> None:
    assert not_passed(checkpoint) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"model_type": "gemma"}, ("architecture", "fail")),
        ({"max_position_embeddings": 262_144}, ("context", "fail")),
        ({"max_position_embeddings": None}, ("context", "look")),
        ({"transformers_version": "4.60.0.dev0"}, ("transformers", "look")),
        ({"transformers_version": "4.9.1"}, None),
        ({"quantization_config": {"bits": 4}}, ("quantization", "look")),
        ({"max_position_embeddings": None, "model_type": "qwen2_vl"}, ("context", "look")),
    ],
)
def test_config_that_imports_may_not_support_is_found(
    change: Mapping[str, Any], expected: tuple[str, str] | None, checkpoint: Path
) -> None:
    (checkpoint / "config.json").write_text(json.dumps({**CONFIG, **change}))
    assert not_passed(checkpoint) == ([expected] if expected else [])


def test_context_of_the_text_part_is_read(checkpoint: Path) -> None:
    config = {"model_type": "mllama", "text_config": {"max_position_embeddings": 131_072}, "transformers_version": "4"}
    (checkpoint / "config.json").write_text(json.dumps(config))
    assert not_passed(checkpoint) == []


def test_region_without_imports_or_the_architecture_is_found(checkpoint: Path) -> None:
    assert not_passed(checkpoint, "sa-east-1") == [("region", "fail")]
    (checkpoint / "config.json").write_text(json.dumps({**CONFIG, "model_type": "gpt_oss"}))
    assert not_passed(checkpoint, "us-west-2") == [("architecture", "fail")]


@pytest.mark.parametrize("end", [0, 7, 8, 20, -1])
def test_truncated_weights_are_found(end: int, checkpoint: Path) -> None:
    (checkpoint / "model.safetensors").write_bytes(safetensors()[:end])
    assert ("tensors", "fail") in not_passed(checkpoint)


def test_infinite_offset_is_found(checkpoint: Path) -> None:
    header = b'{"w": {"dtype": "BF16", "data_offsets": [0, 1e999]}}'
    (checkpoint / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    assert ("tensors", "fail") in not_passed(checkpoint)


@pytest.mark.parametrize("dtype", ["F64", "F8_E4M3", "I8"])
def test_tensor_type_without_a_source_is_unclear(dtype: str, checkpoint: Path) -> None:
    (checkpoint / "model.safetensors").write_bytes(safetensors(dtype))
    assert not_passed(checkpoint) == [("tensors", "look")]


def test_several_files_need_an_index_that_names_them_all(checkpoint: Path) -> None:
    (checkpoint / "model.safetensors").rename(checkpoint / "a.safetensors")
    (checkpoint / "b.safetensors").write_bytes(safetensors())
    assert not_passed(checkpoint) == [("weights", "fail")]
    for names, problems in ((("a", "b"), []), (("a",), ["weights"]), (("a", "b", "c"), ["weights"])):
        files = [f"{name}.safetensors" for name in names]
        (checkpoint / "model.safetensors.index.json").write_text(index(*files))
        assert [check for check, _ in not_passed(checkpoint)] == problems


def test_one_weight_file_is_counted_in_the_singular(checkpoint: Path) -> None:
    for content, says in ((index("model.safetensors"), "1 file, named in the index"), ("[]", "1 file, and ")):
        (checkpoint / "model.safetensors.index.json").write_text(content)
        findings = check_checkpoint(CheckpointFolder(checkpoint), "us-east-1")
        assert [finding.message.startswith(says) for finding in findings if finding.check == "weights"] == [True]


@pytest.mark.parametrize("content", ["[]", "{", '{"weight_map": {}}', '{"metadata": {}, "weight_map": []}'])
def test_invalid_index_is_found(content: str, checkpoint: Path) -> None:
    (checkpoint / "model.safetensors.index.json").write_text(content)
    assert ("weights", "fail") in not_passed(checkpoint)


@pytest.mark.parametrize(
    ("name", "check"),
    [("config.json", "architecture"), ("tokenizer.json", "tokenizer"), ("tokenizer_config.json", "tokenizer")],
)
def test_missing_file_is_found(name: str, check: str, checkpoint: Path) -> None:
    (checkpoint / name).unlink()
    assert (check, "fail") in not_passed(checkpoint)


def test_other_formats_and_adapters_are_found(checkpoint: Path) -> None:
    (checkpoint / "adapter_config.json").write_text("{}")
    assert not_passed(checkpoint) == [("adapter", "fail")]
    (checkpoint / "model.safetensors").rename(checkpoint / "pytorch_model.bin")
    findings = check_checkpoint(CheckpointFolder(checkpoint), "us-east-1")
    (weights,) = [finding for finding in findings if finding.check == "weights"]
    assert "found pytorch_model.bin: save with safe_serialization=True" in weights.message


@pytest.mark.parametrize(("model_type", "limit"), [("llama", "largest_gb"), ("mllama", "largest_multimodal_gb")])
def test_weights_that_are_too_large_are_found(model_type: str, limit: str, checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text(json.dumps({**CONFIG, "model_type": model_type}))
    with (checkpoint / "model.safetensors").open("r+b") as file:
        file.truncate(import_facts()[limit] * 10**9)  # A sparse file.
    assert ("size", "fail") in not_passed(checkpoint)


def test_role_trusts_bedrock_reads_the_checkpoint_and_lists_its_bucket() -> None:
    policy = role_policy("models", "llama/", "111122223333")
    assert {row["Action"] for row in policy["Statement"]} == {"s3:GetObject", "s3:ListBucket"}
    assert policy["Statement"][0]["Resource"] == "arn:aws:s3:::models/llama/*"
    (trusted,) = trust_policy("111122223333", "us-east-1")["Statement"]
    assert trusted["Principal"] == {"Service": "bedrock.amazonaws.com"}
    assert trusted["Condition"]["StringEquals"] == {"aws:SourceAccount": "111122223333"}
