"""A short job for any machine: each node fits a line to its own part of the points, in plain Python."""

import os
import time
from pathlib import Path

STEPS, RATE = 20, 0.1
rank, nodes = int(os.environ["TRN_NODE_RANK"]), int(os.environ["TRN_NODES"])
points = [(x / 10, 3 * x / 10 + 1) for x in range(-10 + rank, 11, nodes)]
slope = intercept = 0.0
for step in range(1, STEPS + 1):
    errors = [slope * x + intercept - y for x, y in points]
    slope -= RATE * 2 * sum(error * x for error, (x, _) in zip(errors, points, strict=True)) / len(points)
    intercept -= RATE * 2 * sum(errors) / len(points)
    loss = sum(error * error for error in errors) / len(points)
    if step % 5 == 0:
        print(f"TRN step={step} loss={loss:.4f}", flush=True)
    time.sleep(0.05)
Path(os.environ["TRN_OUTPUT_DIR"], "line.txt").write_text(f"y = {slope:.2f} x + {intercept:.2f}\n")
