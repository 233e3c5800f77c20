"""The hardware of this node and what its kernel shows of it. Shared by the stand-ins in this folder."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

DRIVER_VERSION = Path("/usr/share/trnlab/neuron_driver")
"""Written by the driver's package: the version of the installed module, which may differ from the loaded one."""

MODULE = Path("/sys/module/neuron")
DEVICES = Path("/sys/devices/virtual/neuron_device")
LOCAL_DISKS = "trnlab"
"""The source of the mount of the local disks."""

ECC_COUNTERS = ("mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected", "sram_ecc_uncorrected")
CORE_COUNTERS = ("hw_hbm_ue_error", "hw_nc_ue_error", "hw_dma_abort_error")


def description() -> dict[str, Any]:
    return json.loads(Path("/etc/trnlab/hardware.json").read_text())


def devices_present(hardware: dict[str, Any]) -> list[int]:
    """Numbers of the Neuron devices that answer."""
    return [number for number in range(hardware["neuron_devices"]) if number not in hardware["missing_devices"]]


def is_driver_loaded() -> bool:
    return MODULE.is_dir()


def load_driver() -> str | None:
    """Load the installed driver. Returns modprobe's error if that fails."""
    hardware = description()
    if not DRIVER_VERSION.is_file():
        return f"FATAL: Module neuron not found in directory /lib/modules/{os.uname().release}"
    if not hardware["driver_loads"]:
        return "ERROR: could not insert 'neuron': No such device"
    MODULE.mkdir(parents=True, exist_ok=True)
    (MODULE / "version").write_text(DRIVER_VERSION.read_text())
    for number in devices_present(hardware):
        Path(f"/dev/neuron{number}").touch()
        counters = DEVICES / f"neuron{number}/stats/hardware"
        counters.mkdir(parents=True, exist_ok=True)
        for name in ECC_COUNTERS:
            (counters / name).write_text("0\n")
        for core in range(hardware["neuron_cores_per_device"]):
            for name in CORE_COUNTERS:
                counter = DEVICES / f"neuron{number}/neuron_core{core}/stats/status/{name}/total"
                counter.parent.mkdir(parents=True, exist_ok=True)
                counter.write_text("0\n")
    return None


def unload_driver() -> None:
    shutil.rmtree(MODULE)
    shutil.rmtree(DEVICES, ignore_errors=True)
    for device in Path("/dev").glob("neuron[0-9]*"):
        device.unlink()
