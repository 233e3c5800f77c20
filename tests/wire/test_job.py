"""Checkpoints of a job: which is the newest, and how the processes or nodes that saved it differ from the job's."""

from typing import Any

import pytest

from trainium_wire.job import Job, checkpoint_names, resumable_checkpoints, saved_otherwise


@pytest.mark.parametrize(
    ("manifest", "has_ranks", "difference"),
    [
        ({"world_size": 1, "nodes": 1}, True, "was saved by 1 process, and this job has 64"),
        ({"world_size": 32, "nodes": 1}, True, "was saved by 32 processes, and this job has 64"),
        ({"world_size": 64, "nodes": 4}, True, ""),
        ({"nodes": 1}, False, "was saved on 1 node, and this job has 2"),
        ({"nodes": 4}, False, "was saved on 4 nodes, and this job has 2"),
        ({"nodes": 2}, False, ""),
        ({}, False, ""),
    ],
)
def test_difference_from_a_checkpoint_is_named(manifest: dict[str, Any], has_ranks: bool, difference: str) -> None:
    job = Job(id="a", nodes=2, processes_per_node=32, command="true", has_ranks=has_ranks)
    assert saved_otherwise(manifest, job) == difference


def test_newest_checkpoint_is_last_and_numbers_decide_within_a_second() -> None:
    manifests = {"a/step-1000.json": 2, "a/step-200.json": 2, "a/step-3000.json": 1, "a/step-200.tmp": 3}
    assert checkpoint_names(manifests) == ["step-3000", "step-200", "step-1000"]


def test_files_that_are_saved_beside_numbered_checkpoints_are_not_the_newest() -> None:
    """The Trainer of Hugging Face writes them to the same folder: a model card, and at the end the model."""
    beside = ("README.md", "training_args.bin", "model.safetensors", "model-00001-of-00002.safetensors", "best.h5")
    manifests = {"a/checkpoint-500.json": 1, **{f"a/{name}.json": 2 for name in beside}}
    assert checkpoint_names(manifests)[-1] == "checkpoint-500"


def test_logs_and_notes_are_not_resumed_from() -> None:
    notes = ("README.md", "training_args.bin", "events.out.tfevents.1764380000.ip-10-0-0-7.12.0", "sample-100.png")
    manifests = {"a/ckpt.pt.json": 1, **{f"a/{name}.json": 2 for name in notes}}
    assert set(checkpoint_names(manifests)) == {"ckpt.pt", *notes}
    assert resumable_checkpoints(checkpoint_names(manifests)) == ["ckpt.pt"]
