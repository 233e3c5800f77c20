"""Which nodes take part in a checkpoint, and what becomes of the checkpoints that are not complete."""

import shutil
from pathlib import Path

import pytest

from tests.userdata.saving_nodes import COPIES, SavingNodes, save
from trn_job import checkpoints
from trn_job.completeness import NodeReports

UNFINISHED = "its name is that of an unfinished save"


def test_entries_that_nodes_share_do_not_keep_checkpoints_of_one_node_incomplete(tmp_path: Path) -> None:
    """Each node writes a log, and only node 0 saves, as in many scripts for DDP."""
    nodes = SavingNodes(tmp_path, 2)
    for rank in (0, 1):
        save(nodes.place(rank), "log", events=f"of node {rank}")
    save(nodes.place(0), "step-1")
    nodes.looks()
    assert nodes.complete == {"log": ["1-0-1", "1-1-1"], "step-1": ["1-0-1"]}
    save(nodes.place(0), "model", weights="of the last step")
    nodes.end()
    nodes.nodes[0].complete_all()
    assert nodes.complete["model"] == ["1-0-1"]
    assert (nodes.log_lines, nodes.incomplete) == ([], {})


def test_node_that_deleted_its_part_between_two_looks_takes_part(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 0, 1)
    shutil.rmtree(nodes.place(1) / "step-1")
    nodes.looks()
    nodes.end()
    nodes.nodes[0].complete_all()
    assert nodes.complete == {}
    assert nodes.incomplete == {"step-1": ["1-0-1"]}


@pytest.mark.parametrize("how", ["replaced", "many names"])
def test_node_whose_names_are_not_all_known_takes_part_in_every_checkpoint(tmp_path: Path, how: str) -> None:
    nodes = SavingNodes(tmp_path, 2)
    if how == "replaced":
        nodes.place(1).rename(tmp_path / "elsewhere")
        save(nodes.place(1), "log")
    else:
        for number in range(checkpoints.MAX_NAMES_REPORTED + 1):
            (nodes.place(1) / f"sample{number}").touch()
    nodes.save("step-1", 0)
    nodes.looks()
    assert "step-1" not in nodes.complete


@pytest.mark.parametrize(
    ("name", "made", "takes_part"),
    [
        ("step-500", {"log", "model.pt"}, False),
        ("step-500", {"step-20"}, True),
        ("step-500", {".step-500"}, True),
        ("step-500", {"tmp-step-500_0"}, True),
        ("model.pt", {"step-20", "events.out.tfevents.17"}, False),
        ("500", {"step-20"}, False),
        ("500", {"20.tmp"}, True),
    ],
)
def test_node_takes_part_in_checkpoints_whose_names_differ_in_numbers(
    name: str, made: set[str], takes_part: bool
) -> None:
    assert NodeReports(names=made).takes_part(name) == takes_part


def test_file_of_node_0_alone_does_not_show_that_a_killed_node_saves_nothing(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    (nodes.place(0) / "README.md").write_text("of the model")
    nodes.looks()
    assert nodes.complete == {"README.md": ["1-0-1"]}
    nodes.save("step-1", 0)
    nodes.look(0)
    nodes.look(0)
    nodes.end(exit_code=-9)
    assert list(nodes.complete) == ["README.md"]


def test_checkpoints_of_another_node_are_complete_at_a_bad_end(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    nodes.save("step-1", 1)
    save(nodes.place(1), "step-2", shard="")
    nodes.looks()
    nodes.end(exit_code=1)
    nodes.nodes[0].await_parts(0.1, lambda: False)
    assert nodes.complete == {"step-1": ["1-1-1"]}
    assert nodes.log_lines == ["checkpoint step-2 is not complete: node 1: step-2/shard has 0 bytes", COPIES]
    assert nodes.incomplete == {"step-2": ["1-1-1"]}


def test_unfinished_saves_are_stored_at_a_good_end_and_named_at_a_bad_one(tmp_path: Path) -> None:
    for exit_code, lines, incomplete in (
        (0, [f"checkpoint .step-3 is not complete: node 0: {UNFINISHED}", COPIES], {".step-3": ["1-0-1"]}),
        (1, [f"checkpoints: .step-3 is not stored: {UNFINISHED}"], {}),
    ):
        nodes = SavingNodes(tmp_path / str(exit_code), 1)
        save(nodes.place(0), ".step-3")
        nodes.looks()
        nodes.end(exit_code=exit_code)
        if exit_code:
            nodes.nodes[0].await_parts(0, lambda: True)
        else:
            nodes.nodes[0].complete_all()
        assert (nodes.complete, nodes.log_lines, nodes.incomplete) == ({}, lines, incomplete)


def test_parts_of_many_checkpoints_are_known_at_the_end(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    names = {f"sample-{number}" for number in range(checkpoints.MAX_PARTS_REPORTED + 10)}
    for name in names:
        (nodes.place(1) / name).write_text("image")
    nodes.end()
    nodes.nodes[0].complete_all()
    assert nodes.complete.keys() == names


def test_checkpoints_named_by_node_are_all_kept(tmp_path: Path) -> None:
    nodes = SavingNodes(tmp_path, 2)
    for rank in (0, 1):
        nodes.save(f"rank-{rank}", rank)
    nodes.looks()
    assert nodes.complete == {}
    nodes.end(1, 0)
    nodes.nodes[0].complete_all()
    assert nodes.complete == {"rank-0": ["1-0-1"], "rank-1": ["1-1-1"]}
