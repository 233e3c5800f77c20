"""A job that saves its state in every layout of checkpoints that nodes know. Part of a job's source; runs on nodes.

    saving.py STEPS       train on two nodes, from the checkpoint of TRN_RESUME_FROM to the last step
    saving.py load PATH   print the step and the states of both nodes from a checkpoint

An attempt stops in the middle of all saves of its second step: some files are whole, and others grow. After SIGUSR1 it
completes them and ends. torch.distributed.checkpoint saves for itself; the other layouts are written
in the order of the libraries that trn_job/completeness.py names.
"""

import io
import json
import os
import re
import signal
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

LAYOUTS = {
    "distributed checkpoint": "dcp-{}",
    "Lightning": "epoch={}.ckpt",
    "NxD": "nxd-{}",
    "Trainer": "checkpoint-{}",
    "DeepSpeed": "global_step{}",
    "rename": "renamed-{}",
    "files of torch.save": "saved-{}",
    "other files": "other-{}",
}
"""The name of a checkpoint with its step, by layout."""
NODES = 2
GROWTH_SECONDS = 0.1

State = list[int]


def advanced(state: State, rank: int, step: int) -> State:
    """The state of a node after a further step."""
    return [(value * 31 + 7 * rank + step) % 1_000_003 for value in state]


def state_after(steps: int) -> list[State]:
    """The states of all nodes after a number of steps without a disturbance."""
    states = [list(range(1, 9)) for _ in range(NODES)]
    for step in range(1, steps + 1):
        states = [advanced(state, rank, step) for rank, state in enumerate(states)]
    return states


class Saves:
    """The saves of one step on this node.

    Attributes:
        is_resumed: Whether saves that stopped in the middle may continue.
    """

    def __init__(self, folder: Path, rank: int, step: int, states: list[State]) -> None:
        self._torch: Any = import_module("torch")
        self._distributed: Any = import_module("torch.distributed")
        self._dcp: Any = import_module("torch.distributed.checkpoint")
        self._folder, self._rank, self._step, self._states = folder, rank, step, states
        self._unfinished: dict[Path, bytes] = {}
        self.is_resumed = False

    def save_in_two_halves(self) -> None:
        """Save in all layouts, but wait in the middle of each save until SIGUSR1."""
        signal.signal(signal.SIGUSR1, self._resume)
        self.save(waits=True)

    def _resume(self, _signal: int, _frame: object) -> None:
        self.is_resumed = True

    def save(self, *, waits: bool = False) -> None:
        """Save in all layouts."""
        own, first = self._states[self._rank], self._rank == 0
        # These files are written last, or never.
        late = waits and not first
        path = {layout: self._folder / name.format(self._step) for layout, name in LAYOUTS.items()}
        self._save_distributed(path["Lightning"])
        self._write(path["NxD"] / f"model/dp_rank_00_tp_rank_00_pp_rank_{self._rank:02}.pt", own, is_late=late)
        self._write(path["Trainer"] / f"rng_state_{self._rank}.pth", own, is_late=late)
        zero = path["DeepSpeed"] / f"zero_pp_rank_{self._rank}_mp_rank_00_optim_states.pt"
        self._write(zero, own, is_late=late)
        self._write(path["files of torch.save"] / f"{self._rank}.pt", own, is_late=late)
        self._put(path["other files"] / f"{self._rank}.json", json.dumps(own).encode(), is_late=late)
        temporary = path["rename"].with_suffix(".tmp")
        self._write(temporary / f"{self._rank}.pt", own, is_late=late)
        if not late:
            temporary.rename(path["rename"])
        if first:
            self._write(path["Lightning"] / "meta.pt", {"step": self._step}, is_late=waits)
            self._write(path["Trainer"] / "pytorch_model.bin", self._states)
            (path["Trainer"] / "trainer_state.json").write_text(json.dumps({"global_step": self._step}))
            self._write(path["DeepSpeed"] / "mp_rank_00_model_states.pt", self._states)
            (self._folder / "latest").write_text(path["DeepSpeed"].name)
        growing = threading.Thread(target=self._grow, daemon=True)
        if waits:
            growing.start()
            print(f"saves half of step {self._step}", flush=True)
        self._save_distributed(path["distributed checkpoint"], waits=late)
        if waits:
            growing.join()
        for file, content in self._unfinished.items():
            file.write_bytes(content)
        if late:
            temporary.rename(path["rename"])
        self._distributed.barrier()
        if first:
            (path["NxD"] / "done").write_text("1")
        print(f"saved step {self._step}", flush=True)

    def _save_distributed(self, folder: Path, *, waits: bool = False) -> None:
        saves = self

        class Writer(self._dcp.FileSystemWriter):
            def write_data(self, *arguments: Any) -> Any:
                while waits and not saves.is_resumed:
                    time.sleep(GROWTH_SECONDS)
                return super().write_data(*arguments)

        own = {f"weights-{self._rank}": self._torch.tensor(self._states[self._rank])}
        self._dcp.save(own, storage_writer=Writer(folder))

    def _write(self, file: Path, content: Any, *, is_late: bool = False) -> None:
        buffer = io.BytesIO()
        self._torch.save(content, buffer)
        self._put(file, buffer.getvalue(), is_late=is_late)

    def _put(self, file: Path, content: bytes, *, is_late: bool) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content[: len(content) // 2] if is_late else content)
        if is_late:
            self._unfinished[file] = content

    def _grow(self) -> None:
        while not self.is_resumed:
            for file in self._unfinished:
                with file.open("ab") as opened:
                    opened.write(b"0")
            time.sleep(GROWTH_SECONDS)


def load(path: Path) -> tuple[int, list[State]]:
    """The step and the states of all nodes from a checkpoint."""
    torch: Any = import_module("torch")
    checkpoint: Any = import_module("torch.distributed.checkpoint")

    def read(name: str) -> Any:
        return torch.load(path / name)

    layout, step = next(
        (layout, int(match[1]))
        for layout, name in LAYOUTS.items()
        if (match := re.fullmatch(re.escape(name).replace(r"\{\}", r"(\d+)"), path.name))
    )
    if layout in ("distributed checkpoint", "Lightning"):
        state = {f"weights-{rank}": torch.zeros(8, dtype=torch.int64) for rank in range(NODES)}
        checkpoint.load(state, checkpoint_id=path, no_dist=True)
        assert layout != "Lightning" or read("meta.pt")["step"] == step
        return step, [tensor.tolist() for tensor in state.values()]
    if layout == "NxD":
        assert (path / "done").exists()
        return step, [read(f"model/dp_rank_00_tp_rank_00_pp_rank_{rank:02}.pt") for rank in range(NODES)]
    if layout == "Trainer":
        states = read("pytorch_model.bin")
        assert json.loads((path / "trainer_state.json").read_text())["global_step"] == step
        assert [read(f"rng_state_{rank}.pth") for rank in range(NODES)] == states
        return step, states
    if layout == "DeepSpeed":
        states = read("mp_rank_00_model_states.pt")
        assert [read(f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt") for rank in range(NODES)] == states
        return step, states
    if layout == "other files":
        return step, [json.loads((path / f"{rank}.json").read_text()) for rank in range(NODES)]
    return step, [read(f"{rank}.pt") for rank in range(NODES)]


def train(last: int) -> None:
    """Train to the last step, or until the middle of the saves of the second one."""
    rank, resumed = int(os.environ["RANK"]), os.environ.get("TRN_RESUME_FROM")
    start, states = load(Path(resumed)) if resumed else (0, state_after(0))
    print(f"starts after step {start}, from {resumed and Path(resumed).name}", flush=True)
    import_module("torch.distributed").init_process_group("gloo")
    for step in range(start + 1, last + 1):
        states = [advanced(state, number, step) for number, state in enumerate(states)]
        saves = Saves(Path(os.environ["TRN_CHECKPOINT_DIR"]), rank, step, states)
        if step > start + 1:
            # Nodes look every second, and must see DeepSpeed's `latest` before it leads to the next checkpoint.
            time.sleep(2)
            saves.save_in_two_halves()
            return
        saves.save()
    if not rank:
        (Path(os.environ["TRN_OUTPUT_DIR"]) / "states.json").write_text(json.dumps(states))


if __name__ == "__main__":
    if sys.argv[1] == "load":
        print(json.dumps([load(Path(path)) for path in sys.argv[2:]]))
    else:
        train(int(sys.argv[1]))
