"""Jobs of `trn run` on the deployed cluster: submitted with the command and observed through S3."""

import json
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tools.lab.deployment import context_options, members, output, tag_value
from tools.lab.hypervisor import Hypervisor
from tools.lab.laboratory import REGION, Laboratory
from tools.lab.node import Node
from tools.lab.paths import REPOSITORY, RUN
from tools.lab.stored_jobs import StoredJobs
from trainium_core.facts import facts
from trainium_core.naming import RECORDS_OUTPUT
from trainium_local.environment import ACCOUNT_ID

UNIT = "trn-job.service"
EXAMPLE = REPOSITORY / "examples/lm"
PACED = Path(__file__).with_name("paced.py")
STEPS = 240
MODEL = {"steps": STEPS, "batch": 2, "width": 32, "layers": 1, "heads": 2, "context": 32, "learning-rate": 0.01}
PAUSE = 1.0
"""Pause after each step in seconds, so that a job lasts longer than all faults that a test injects."""
CHECKPOINT_EVERY = 5
LONGEST_LOG = 4000
PROCESSES = "-u paced.py"
"""Part of the command line of the processes that torchrun starts, and of no other."""

OWN_BUCKET = "trnlab-own"
"""A bucket outside the cluster."""
CHECKPOINTS, TOKENS = "checkpoints", "tokens"
"""Folders in that bucket."""
INPUT_TEXT = "of the tokens"
"""Text of an object below TOKENS."""
PARAMETER = "/trnlab/token"
SECRET = "a-value-that-no-log-shows"
SECRET_ARN = f"arn:aws:ssm:{REGION}:{ACCOUNT_ID}:parameter{PARAMETER}"

Table = Mapping[str, str]


class ClusterJobs(StoredJobs):
    """The jobs of a deployed cluster, one after the other.

    Args:
        settings: The settings that the cluster was deployed with.

    Attributes:
        booted: Number of nodes that the deployment started.
    """

    def __init__(self, lab: Laboratory, hypervisor: Hypervisor, settings: Mapping[str, str]) -> None:
        super().__init__(lab, output(lab, RECORDS_OUTPUT), count=int(settings["nodes"]))
        self._settings = settings
        self.booted = hypervisor.started
        self._hypervisor = hypervisor
        self.source = RUN / "job"
        shutil.copytree(EXAMPLE, self.source, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        shutil.copy(PACED, self.source)

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes by rank, once all are in the membership."""
        return [node for _, node in sorted(self._hypervisor.nodes.items())]

    def trn(self, *words: str) -> str:
        """Run a `trn` command and return its output.

        Raises:
            AssertionError: The command did not end with 0.
        """
        run = subprocess.run(self.command(*words), cwd=REPOSITORY, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def is_verified(self) -> bool:
        """Whether all nodes are verified and have reached each other, as a job requires."""
        return subprocess.run(self.command("nodes"), cwd=REPOSITORY, capture_output=True, check=False).returncode == 0

    def command(self, *words: str) -> list[str]:
        """A command line of `trn` for the cluster."""
        return [str(Path(sys.executable).with_name("trn")), *words, *context_options(**self._settings)]

    def start(self, name: str, *, paced: bool, **keys: Any) -> str:
        """Start a training job and return its ID. If the job resumes another one, first wait for the end of that one.

        Args:
            name: Name of the job.
            paced: As for `training`.
            keys: Further keys of the job file.
        """
        if "resume" in keys:
            self.end_of(keys["resume"])
        command, environment = training(paced=paced)
        file = write_job_file(name, command, self.source, environment=environment, checkpoint_seconds=1, **keys)
        return json.loads(self.trn("run", "--detach", "--json", str(file)))["job"]["id"]

    def await_step(self, job: str, attempt: int = 1) -> None:
        """Wait until node 0 has sent a line of progress."""

        def has_begun_or_ended() -> bool:
            return bool(self.losses(job, attempt) or self.content(job, f"attempts/{attempt}/end.json"))

        self.wait_for(f"a step of {job}, attempt {attempt}", has_begun_or_ended)
        assert self.losses(job, attempt), (self.end_of(job, attempt), self.log(job, attempt, 0)[-LONGEST_LOG:])

    def checkpoints(self, job: str) -> Sequence[str]:
        """The manifests of complete checkpoints."""
        prefix = f"{CHECKPOINTS}/{job}/checkpoints/"
        objects = self.s3.list_objects_v2(Bucket=OWN_BUCKET, Prefix=prefix).get("Contents", [])
        keys = [item["Key"] for item in objects]
        return [key for key in keys if key.endswith(".json") and "/" not in key.removeprefix(prefix)]

    def processes(self, *, began_before: float = math.inf) -> Sequence[str]:
        """The command lines of the job's processes on all nodes that are powered on.

        Args:
            began_before: Seconds since 1970. Excludes the next attempt, which may begin before this call.
        """
        now = time.time()
        listed = [
            node.execute("ps", "--no-headers", "-eo", "etimes,unit:40,args").splitlines()
            for node in self.nodes
            if node.is_on
        ]
        lines = [line.split(maxsplit=1) for lines in listed for line in lines]
        return [text for age, text in lines if now - int(age) < began_before and (UNIT in text or PROCESSES in text)]

    def computing(self, *, began_before: float = math.inf) -> Sequence[str]:
        """Those of `processes` that compute, one for each rank.

        Args:
            began_before: As for `processes`.
        """
        return [line for line in self.processes(began_before=began_before) if PROCESSES in line]

    def await_verified(self) -> None:
        """Wait until all nodes are in the membership, and verified."""
        self.wait_for("all nodes", lambda: len(members(self.lab)) == self.count == len(self.nodes))
        self.wait_for(
            "their verification",
            lambda: {tag_value(self.lab, name, "trn:node") for name in members(self.lab)} == {"verified"},
        )


def make_job_resources(lab: Laboratory) -> Mapping[str, str]:
    """Make the resources that jobs need outside the cluster, and return the settings that let nodes reach them."""
    location: Any = {"LocationConstraint": REGION}
    s3 = lab.client("s3")
    s3.create_bucket(Bucket=OWN_BUCKET, CreateBucketConfiguration=location)
    s3.put_object(Bucket=OWN_BUCKET, Key=f"{TOKENS}/first/part", Body=f"{INPUT_TEXT}\n".encode())
    lab.client("ssm").put_parameter(Name=PARAMETER, Value=SECRET, Type="SecureString")
    folder = f"s3://{OWN_BUCKET}"
    return {
        "cache_bucket": OWN_BUCKET,
        "job_checkpoints": f"{folder}/{CHECKPOINTS}",
        "job_inputs": f"{folder}/{TOKENS}",
        "job_secrets": SECRET_ARN,
    }


def training(*, paced: bool) -> tuple[str, Mapping[str, str]]:
    """The command and environment of each node.

    Args:
        paced: Whether to pause after each step, and to save a checkpoint every few steps.
    """
    model = {**MODEL, "checkpoint-every": CHECKPOINT_EVERY if paced else STEPS}
    options = " ".join(f"--{option} {value}" for option, value in model.items())
    environment = {
        "PAUSE_SECONDS": str(PAUSE if paced else 0),
        "PYTHONWARNINGS": "ignore",
        # Otherwise, gloo would resolve the host's name.
        "GLOO_SOCKET_IFNAME": "eth0",
    }
    return torchrun(f"{PACED.name} {options}"), environment


def torchrun(script: str) -> str:
    """The torchrun command of each node, with one process instead of 32: all nodes share this machine's CPUs."""
    return (
        f"torchrun --nnodes=$TRN_NODES --nproc_per_node=1 --node_rank=$TRN_NODE_RANK --master_addr=$HEAD_NODE "
        f"--master_port={facts()['rendezvous']['port']} --max_restarts=0 {script}"
    )


def write_job_file(name: str, command: str, source: Path, **keys: Any) -> Path:
    """Write a job file for `trn run`.

    Args:
        name: Name of the job and of the file.
        command: Command of each node.
        source: Source directory of the job.
        keys: Further keys; a mapping becomes a table.
    """
    keys = {"name": name, "source": str(source), "command": command, **keys}
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items() if not isinstance(value, Mapping)]
    for key, table in keys.items():
        if isinstance(table, Mapping):
            lines += [f"[{key}]", *(f"{name} = {json.dumps(value)}" for name, value in cast("Table", table).items())]
    file = RUN / f"{name}.toml"
    file.write_text("\n".join(lines))
    return file
