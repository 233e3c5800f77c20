#!/usr/bin/python3
"""modprobe, rmmod or modinfo, as the first argument says, for the drivers of Neuron, EFA and Lustre."""

import os
import sys

from node_hardware import DRIVER_VERSION, is_driver_loaded, load_driver, unload_driver

ALWAYS_THERE = {"efa", "lustre", "lnet"}


def main(program: str, arguments: list[str]) -> str | None:
    """Returns why the program fails, or None."""
    modules = [argument for argument in arguments if not argument.startswith("-")]
    if program == "modprobe" and set(modules) <= ALWAYS_THERE:
        return None
    if "neuron" not in modules:
        os.execv("/usr/bin/kmod", [program, *arguments])
    if program == "modinfo":
        if not DRIVER_VERSION.is_file():
            return "modinfo: ERROR: Module neuron not found."
        version = DRIVER_VERSION.read_text().strip()
        print(version if "version" in arguments else f"version:        {version}")
        return None
    if program == "rmmod" or "-r" in arguments:
        if not is_driver_loaded():
            return "rmmod: ERROR: Module neuron is not currently loaded"
        unload_driver()
        return None
    problem = None if is_driver_loaded() else load_driver()
    return f"modprobe: {problem}" if problem else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
