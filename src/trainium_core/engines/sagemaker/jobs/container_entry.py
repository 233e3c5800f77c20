"""Entry point of a SageMaker training container: `python3 container_entry.py SCRIPT [ARGUMENT...]`.

Determines the node's rank and the number of nodes, unpacks the source archive next to this file, installs its
requirements.txt, counts the NeuronCores, and starts torchrun with one process for each core. Then moves what the script
wrote to its working directory and beside it to the model folder. Uses only the standard library (Python 3.9 and
later), no SageMaker toolkit. On failure, writes the reason to the file that SageMaker reads.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections import deque
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
"""/opt/ml: this file is /opt/ml/input/data/code/container_entry.py."""

SOURCE = "source.tar.gz"
NAME_SECONDS = 300
KEPT_LINES = 400
REASON_CHARACTERS = 1024  # SageMaker shows only so many.


class EntryError(Exception):
    """Training cannot start. The message is for the user who submitted the job."""


def main(script: str, arguments: "list[str]") -> int:
    """Run the script on this node. Returns torchrun's exit code, or 1 if training cannot start."""
    try:
        nodes, rank = place(read_json("input/config/resourceconfig.json"))
        folder = unpack()
        install_requirements(folder)
        processes = process_count()
        variables = environment(nodes, rank)
        given = [expanded(argument, variables) for argument in arguments + hyperparameters()]
        command = torchrun(script, given, nodes=nodes, rank=rank, processes=processes)
        wait_for_names(nodes)
    except EntryError as error:
        return fail(str(error), 1)
    print(f"trn: node {rank + 1} of {len(nodes)}, {processes} processes: {' '.join(command)}", flush=True)
    cached = compile_cache(variables.get("NEURON_COMPILE_CACHE_URL"), processes=processes * len(nodes))
    before, beside = files_below(folder), {entry.name for entry in ROOT.iterdir()}
    code, lines = run(command, folder, {**variables, **cached})
    keep_written(folder, before)
    keep_beside(beside)
    return fail(reason(lines, code), code) if code else 0


def read_json(name: str) -> Any:
    """The content of a JSON file that SageMaker wrote; {} if it does not exist.

    Raises:
        EntryError: The file is not JSON.
    """
    try:
        return json.loads((ROOT / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise EntryError(f"{ROOT / name} is not JSON: {error}") from error


def place(resources: "dict[str, Any]") -> "tuple[list[str], int]":
    """The names of all nodes, in an order that is the same on every node, and this node's rank.

    Raises:
        EntryError: The content of resourceconfig.json does not name this node.
    """
    try:
        nodes = sorted(resources["hosts"], key=lambda name: (len(name), name))
        return nodes, nodes.index(resources["current_host"])
    except (KeyError, ValueError) as error:
        raise EntryError(f"resourceconfig.json does not name this node: {error!r}") from error


def unpack() -> Path:
    folder = ROOT / "code"
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(Path(__file__).with_name(SOURCE)) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11 has it from 3.11.4 on
        archive.extractall(folder)
    return folder


def install_requirements(folder: Path) -> None:
    """Install requirements.txt of the source, if there is one. pip needs access to a package index.

    Raises:
        EntryError: pip failed.
    """
    if not (folder / "requirements.txt").is_file():
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--requirement", "requirements.txt"]
    ended = subprocess.run(
        command, cwd=folder, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if ended.returncode:
        last = (ended.stdout.strip().splitlines() or ["pip printed nothing"])[-1]
        raise EntryError(f"requirements.txt could not be installed: {last}")


def process_count() -> int:
    """One process for each logical NeuronCore that neuron-ls shows; the plan's number if neuron-ls is missing.

    Raises:
        EntryError: neuron-ls fails, prints an unknown format, or shows another number than the plan's. Other nodes
            would wait for missing processes.
    """
    expected = int(os.environ["TRN_EXPECTED_PROCESSES"])
    try:
        shown = subprocess.run(["neuron-ls", "-j"], check=True, capture_output=True).stdout
        cores = logical_cores(json.loads(shown))
    except FileNotFoundError:
        print(f"trn: no neuron-ls in this image; {expected} processes, as the plan expects", flush=True)
        return expected
    except subprocess.CalledProcessError as error:
        raise EntryError(f"neuron-ls failed: {error.stderr.decode(errors='replace').strip()}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise EntryError(f"neuron-ls printed an unknown format: {error!r}") from error
    if cores != expected:
        raise EntryError(f"neuron-ls shows {cores} logical NeuronCores, the plan expects {expected}")
    return cores


def logical_cores(devices: "list[dict[str, Any]]") -> int:
    """Number of logical NeuronCores of the devices. neuron-ls counts with the host's LNC; the job's LNC may differ."""
    wanted = os.environ.get("NEURON_LOGICAL_NC_CONFIG")
    total = 0
    for device in devices:
        of_host = device.get("logical_neuroncore_config")
        cores = int(device.get("nc_count", 0))
        total += cores * int(of_host) // int(wanted) if of_host and wanted else cores
    return total


def wait_for_names(nodes: "list[str]") -> None:
    """Wait until the nodes' names resolve. SageMaker publishes them while it starts the nodes.

    Raises:
        EntryError: A name does not resolve within NAME_SECONDS.
    """
    deadline = time.monotonic() + NAME_SECONDS
    for name in nodes if len(nodes) > 1 else []:
        while True:
            try:
                socket.gethostbyname(name)
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise EntryError(f"the name of node {name} did not resolve within {NAME_SECONDS} s") from error
                time.sleep(1)


def hyperparameters() -> "list[str]":
    values = read_json("input/config/hyperparameters.json")
    return [part for name in sorted(values) for part in (f"--{name}", str(values[name]))]


def torchrun(script: str, arguments: "list[str]", *, nodes: "list[str]", rank: int, processes: int) -> "list[str]":
    """The command of torchrun's module, with the current Python."""
    address = nodes[0] if len(nodes) > 1 else "127.0.0.1"
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        f"--nnodes={len(nodes)}",
        f"--nproc_per_node={processes}",
        f"--node_rank={rank}",
        f"--master_addr={address}",
        f"--master_port={os.environ['TRN_RENDEZVOUS_PORT']}",
        script,
        *arguments,
    ]


def environment(nodes: "list[str]", rank: int) -> "dict[str, str]":
    """The variables of the script: those of the container, of SageMaker's toolkit and of a cluster's nodes."""
    config = read_json("input/config/resourceconfig.json")
    named = {
        "SM_MODEL_DIR": str(ROOT / "model"),
        "SM_OUTPUT_DATA_DIR": str(ROOT / "output" / "data"),
        "SM_HOSTS": json.dumps(nodes),
        "SM_CURRENT_HOST": nodes[rank],
        # The same names as on a cluster, so that a script can run on both.
        "TRN_INPUT_DIR": str(ROOT / "input" / "data"),
        "TRN_OUTPUT_DIR": str(ROOT / "model"),
        "TRN_NODES": str(len(nodes)),
        "TRN_NODE_RANK": str(rank),
        "HEAD_NODE": nodes[0],
    }
    for channel in read_json("input/config/inputdataconfig.json"):
        named[f"SM_CHANNEL_{channel.upper()}"] = str(ROOT / "input" / "data" / channel)
    interface = config.get("network_interface_name")
    if interface:
        named["CCOM_SOCKET_IFNAME"] = interface
    for folder in ("model", "output/data", "input/data"):
        (ROOT / folder).mkdir(parents=True, exist_ok=True)
    # The same paths from the working directory as on a cluster. SageMaker makes ../checkpoints.
    for name, folder in (("outputs", "model"), ("inputs", "input/data")):
        if not (ROOT / name).exists():
            (ROOT / name).symlink_to(folder)
    known = {**named, **os.environ}
    return {**known, **{name: expanded(value, known) for name, value in os.environ.items()}}


def expanded(text: str, variables: "dict[str, str]") -> str:
    """The text with the values of the variables of the job's folders."""
    names = r"\$(?:\{(TRN_(?:CHECKPOINT|OUTPUT|INPUT)_DIR)\}|(TRN_(?:CHECKPOINT|OUTPUT|INPUT)_DIR)(?![A-Za-z0-9_]))"
    return re.sub(names, lambda found: variables.get(found[1] or found[2], found[0]), text)


def compile_cache(url: "str | None", *, processes: int) -> "dict[str, str]":
    """The variables that separate PyTorch/XLA's compiled graphs by release.

    {} without a compile cache, if the job sets another cache URL, or if the release of the compiler is unknown.
    """
    cache = json.loads(os.environ.get("TRN_COMPILE_CACHE", "{}"))
    if not cache or url != f"{cache['url']}/direct":
        return {}
    try:
        # Next to this file: a copy of trainium_wire.cache_place.
        import compile_cache_place  # pyright: ignore

        module: Any = compile_cache_place
        direct_url = module.direct_url(
            cache["url"],
            compiler=metadata.version("neuronx-cc"),
            instance_type=cache["instance_type"],
            lnc=cache["lnc"],
            world_size=processes,
        )
    except (ImportError, ValueError) as error:
        print(f"trn: the compile cache is not separated by release: {error}", flush=True)
        return {}
    return {"NEURON_COMPILE_CACHE_URL": direct_url}


def run(command: "list[str]", folder: Path, variables: "dict[str, str]") -> "tuple[int, deque[str]]":
    """Run the command to its end. Returns its exit code and its last lines.

    Forwards its output, and the signal with which SageMaker stops a job.
    """
    child = subprocess.Popen(
        command,
        cwd=folder,
        env={**variables, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )

    def stop(number: int, _frame: "FrameType | None") -> None:
        child.send_signal(number)

    signal.signal(signal.SIGTERM, stop)
    lines: deque[str] = deque(maxlen=KEPT_LINES)
    assert child.stdout is not None
    for line in child.stdout:
        print(line, end="", flush=True)
        lines.append(line.rstrip("\n"))
    return child.wait(), lines


def files_below(folder: Path) -> "dict[str, tuple[int, int]]":
    """The sizes and modification times of files by path, without bytecode and symbolic links."""
    found = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
    states = {path: file.stat() for path, file in found.items() if file.suffix != ".pyc" and not file.is_symlink()}
    return {path: (state.st_size, state.st_mtime_ns) for path, state in states.items()}


def keep_written(folder: Path, before: "dict[str, tuple[int, int]]") -> None:
    """Move the files that the script created or changed to the folder that SageMaker stores."""
    for path, state in files_below(folder).items():
        if before.get(path) != state:
            kept = ROOT / "model" / "working-directory" / path
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(str(folder / path), kept)


def keep_beside(before: "set[str]") -> None:
    """Move what the script made beside its working directory, such as ../results, to the folder that SageMaker stores.

    As on a cluster, hidden entries and links are no outputs. What SageMaker stores itself stays.
    """
    for entry in sorted(ROOT.iterdir()):
        if not (
            entry.name in before or entry.name.startswith(".") or entry.is_symlink() or entry.name == "checkpoints"
        ):
            kept = ROOT / "model" / "home-directory" / entry.name
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(str(entry), kept)


def reason(lines: "deque[str]", code: int) -> str:
    """The last error of the script, which has more detail than torchrun's summary after it."""
    errors = [line for line in lines if re.search(r"^(\[rank\d+\]:\s*)?[\w.]*(Error|Exception|Interrupt)\b", line)]
    own = [line for line in errors if "ChildFailedError" not in line]
    last = own or errors or [line for line in lines if line.strip()]
    return f"{last[-1].strip()} (exit code {code})" if last else f"torchrun ended with exit code {code}"


def fail(why: str, code: int) -> int:
    print(f"trn: failed: {why}", flush=True)
    (ROOT / "output").mkdir(parents=True, exist_ok=True)
    (ROOT / "output" / "failure").write_text(why[:REASON_CHARACTERS], encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
