"""Nodes that save checkpoints: for each a folder and the Checkpoints of its wrapper; and one store."""

from pathlib import Path
from typing import Any

from tests.userdata.job_parts import MemoryStore, launch
from trn_job import checkpoint_download
from trn_job.checkpoints import Checkpoints

COPIES = "`trn cp job:incomplete-checkpoints DIR` copies what is stored of them"
"""The last line of the log after those on incomplete checkpoints."""


def save(folder: Path, name: str, **files: str) -> None:
    for file, text in (files or {"model": "weights"}).items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Clock:
    """A clock that does not refer to its nodes, so that each node's inotify instance is closed when its test ends."""

    def __init__(self) -> None:
        self.now = 1e6

    def __call__(self) -> float:
        return self.now


class SavingNodes:
    """The checkpoint folders of a job's nodes, and the lines in their logs."""

    def __init__(self, folder: Path, nodes: int, **spec: Any) -> None:
        self.store, self.folder, self.log_lines, self.clock = MemoryStore(), folder, list[str](), Clock()
        store: Any = self.store
        self.launches = [launch(rank, nodes, **spec) for rank in range(nodes)]
        self.nodes = [
            Checkpoints(each, store, self.place(each.rank), self.log_lines.append, self.clock) for each in self.launches
        ]
        for node in self.nodes:
            node.begin_running()

    def place(self, rank: int) -> Path:
        place = self.folder / f"node-{rank}"
        place.mkdir(parents=True, exist_ok=True)
        return place

    def save(self, name: str, *ranks: int) -> None:
        for rank in ranks:
            save(self.place(rank), name, **{"meta": f"of {rank}", f"shard_{rank}": f"weights {rank}"})

    def look(self, *ranks: int, state: str = "running") -> None:
        """Let nodes, by default all of them, look at their folders and write their records. Node 0 is the last."""
        self.clock.now += 20
        for rank in reversed(ranks or range(len(self.nodes))):
            self.nodes[rank].upload()
            self.store.objects[self.launches[rank].keys.node(rank)] = {
                "state": state,
                "checkpoints": self.nodes[rank].as_record(),
            }

    def looks(self) -> None:
        """As many looks of all nodes as a checkpoint needs at most that no longer changes."""
        for _ in range(4):
            self.look()

    def end(self, *ranks: int, exit_code: int | None = 0) -> None:
        """Let the commands of nodes, by default of all of them, end."""
        for rank in ranks or range(len(self.nodes)):
            self.nodes[rank].end_running(exit_code)
        self.look(*ranks, state="failed" if exit_code else "succeeded")

    def resume(self, folder: Path, name: str) -> "SavingNodes":
        """The nodes of the next attempt, which have downloaded a checkpoint to their folders of checkpoints."""
        others = SavingNodes(folder, len(self.nodes))
        others.store, others.clock.now = self.store, self.clock.now
        store: Any = self.store
        others.launches = [each._replace(attempt=each.attempt + 1, resume_from=name) for each in self.launches]
        others.nodes = [
            Checkpoints(each, store, others.place(each.rank), others.log_lines.append, others.clock)
            for each in others.launches
        ]
        for each, node in zip(others.launches, others.nodes, strict=True):
            node.add_resumed(*checkpoint_download.download(each, store, others.place(each.rank)))
            node.begin_running()
        return others

    @property
    def complete(self) -> dict[str, list[str]]:
        """The parts of complete checkpoints, which have a manifest."""
        prefix, found = "job/checkpoints/", dict[str, list[str]]()
        for key, content in self.store.objects.items():
            if key.startswith(prefix) and "/" not in key.removeprefix(prefix):
                found[content["name"]] = content["parts"]
        return found

    @property
    def incomplete(self) -> dict[str, list[str]]:
        """The parts of incomplete checkpoints in the list at the end."""
        return self.store.objects.get("job/attempts/incomplete-checkpoints.json", {}).get("parts", {})

    def resumed(self, name: str, rank: int, **spec: Any) -> dict[str, str]:
        """The texts of the files that a node downloads, by path."""
        folder = self.folder / f"resumed-{rank}-{len(spec)}"
        store: Any = self.store
        resuming = launch(rank, len(self.nodes), **spec)._replace(resume_from=name)
        place, _ = checkpoint_download.download(resuming, store, folder)
        return {str(file.relative_to(place)): file.read_text() for file in place.rglob("*") if file.is_file()}
