"""The uncorrectable errors that the devices of this node have counted in the attempt."""

from __future__ import annotations

import threading

from trn_node import files, gpu, hardware


class DeviceErrors:
    """The uncorrectable errors since this object was created.

    Counters of Neuron devices are files. Those of GPUs require nvidia-smi, which runs at the creation and at the first
    call of `named`, unless it failed before.
    """

    def __init__(self) -> None:
        self._has_gpus = files.path(gpu.DRIVER).exists()
        self._before = gpu.error_counts(gpu.SHORT_SECONDS) if self._has_gpus else hardware.counters()
        self._of_gpus: list[str] | None = None
        self._lock = threading.Lock()

    def named(self) -> list[str]:
        """The devices that have counted errors, each as a sentence. Without readable counters there are none."""
        if not self._has_gpus:
            return [*hardware.increases(self._before, hardware.counters())][: hardware.ERRORS_NAMED]
        with self._lock:
            if self._of_gpus is None:
                now = gpu.error_counts(gpu.SHORT_SECONDS) if self._before else {}
                self._of_gpus = gpu.increases(self._before, now)[: hardware.ERRORS_NAMED]
            return self._of_gpus
