"""examples/lm/train.py at a pace that a test can follow. Part of a job's source; runs on nodes of the lab.

PAUSE_SECONDS: how long each step waits. Each process prints when it took its first step, and until then that it is
alive, so that a hang can be distinguished from a busy machine.
"""

import os
import runpy
import threading
import time
from typing import Any

stepped = threading.Event()


def report_beginning() -> None:
    while not stepped.wait(2):
        print("begins", flush=True)


threading.Thread(target=report_beginning, daemon=True).start()

import torch  # noqa: E402  # pyright: ignore[reportMissingImports]


class Paced(torch.optim.AdamW):  # pyright: ignore[reportUntypedBaseClass]
    def step(self, *arguments: Any, **named: Any) -> Any:
        done = super().step(*arguments, **named)
        if not stepped.is_set():
            stepped.set()
            print(f"rank {os.environ['RANK']}: first step at {time.time():.2f}", flush=True)
        time.sleep(float(os.environ["PAUSE_SECONDS"]))
        return done


torch.optim.AdamW = Paced
runpy.run_path("train.py", run_name="__main__")
