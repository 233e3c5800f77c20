"""A job as submitted to the nodes, and the ends of jobs and attempts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, cast

from trainium_wire.formats import empty, json_value, moment, now_text, one_line
from trainium_wire.keys import JOBS_PREFIX

FORMAT = 1
"""The format of a job's record. Readers refuse any other."""

CHECKPOINT_SECONDS = 30
"""Default interval between checks of the checkpoint folder."""

SUCCEEDED, FAILED, NODE_LOST = "succeeded", "failed", "node-lost"
HUNG, STOPPED, INTERRUPTED, TIME_LIMIT = "hung", "stopped", "interrupted", "time-limit"
ALL_FILES, OWN_FILES = "all", "own"
"""The files of a checkpoint that a node downloads to resume: those of all nodes, or its own and those of node 0."""

RESULTS_LOST = "results-lost"
"""The command of a node ended with 0, but its checkpoints or outputs did not reach S3."""
STORED_CODES, RESULTS_LOST_CODE = (0, 1, 2), 5
"""Exit codes of `trn_job`: nothing of the attempt is only on this node; results are. Another one is that of a kill."""
RESTART_CODE = 75
"""Exit code of a pod's program that has JobSet start all pods again: EX_TEMPFAIL of sysexits(3)."""
RESULTS = (SUCCEEDED, FAILED, NODE_LOST, HUNG, STOPPED, INTERRUPTED, TIME_LIMIT, RESULTS_LOST)

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")
_NOTE = re.compile(r"events\.out\.tfevents\..*|training_args\.bin|.*\.(log|md|csv|png|jpe?g)", re.I)
"""Files that libraries and scripts write beside checkpoints."""
_LONGEST_REASON = 600
_LONGEST_TRACEBACK = 8000


_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "tuple": (list,),
    "Mapping": (dict,),
}


def is_job_id(text: str) -> bool:
    """Whether a job ID is valid. It becomes part of paths and command lines."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True)
class Job:
    """A job. Times are in UTC, durations in seconds. A limit of None means no limit.

    Attributes:
        id: Job ID, which `is_job_id` accepts.
        nodes: Number of nodes, from the start of the membership.
        processes_per_node: Number of processes that torchrun starts on each node.
        command: Bash line that each node runs in the unpacked source, after `setup`.
        has_ranks: Whether torchrun starts the processes; otherwise the command decides their number.
        name, cluster, submitted_at, submitted_by: For `trn` and the functions; nodes do not use them. The last is the
            name of an IAM user or of a role's session; empty if unknown.
        source_sha256: Digest of the packed source; a node runs no other source.
        stack: Software stack whose environment the command gets. Default: that of the node.
        setup: Bash line that each node runs before `command`, for example to install packages.
        environment: Variables of `setup` and `command`.
        secrets: ARNs by the names of their variables.
        inputs: S3 URLs by name; URLs of folders end with a slash. The URL of an upload is its path below
            INPUTS_PREFIX and the job ID, after `inputs/`.
        checkpoints: S3 URL of the folder with the checkpoints of all jobs. Default: the cluster's.
        waking_seconds: Time that the cluster took to wake for the job.
        checkpoint_seconds: Interval between checks of the checkpoint folder.
        compile_cache: Whether the nodes use the cluster's compile cache.
        observe: Whether the nodes report the counters of the frameworks.
        profile: Ranks to profile with the Neuron runtime; if `has_ranks` is false, ranks of nodes.
        profile_device: Whether profiles include traces of the devices.
        resume_from: Earlier job whose last checkpoint the job continues from.
        resume_files: ALL_FILES or OWN_FILES.
        retries: Maximum number of restarts without progress in between (`restarts.restart_pause`).
        retry_on_exit_codes: Exit codes of a failed command after which the job is retried, as in shells.
        retry_on_hang: Whether the job is retried after it hung.
        hang_seconds: How long node 0 may print nothing while no node compiles.
        time_limit_seconds: Maximum time from the start of the first attempt.
    """

    id: str
    nodes: int
    processes_per_node: int
    command: str
    has_ranks: bool = True
    name: str = ""
    cluster: str = ""
    submitted_at: str = ""
    submitted_by: str = ""
    source_sha256: str | None = None
    stack: str | None = None
    setup: str | None = None
    environment: Mapping[str, str] = field(default_factory=empty)
    secrets: Mapping[str, str] = field(default_factory=empty)
    inputs: Mapping[str, str] = field(default_factory=empty)
    checkpoints: str | None = None
    waking_seconds: float | None = None
    checkpoint_seconds: int = CHECKPOINT_SECONDS
    compile_cache: bool = True
    observe: bool = False
    profile: tuple[int, ...] = ()
    profile_device: bool = False
    resume_from: str | None = None
    resume_files: str = ALL_FILES
    retries: int = 0
    retry_on_exit_codes: tuple[int, ...] = ()
    retry_on_hang: bool = False
    hang_seconds: int | None = None
    time_limit_seconds: int | None = None

    def as_record(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    def to_json(self) -> str:
        return json.dumps(self.as_record(), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Job:
        """Parse a job.

        Raises:
            ValueError: The text is not a job in this format. The message has the reason.
        """
        try:
            return cls.from_record(json_value(text))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a job: {error}") from error

    @classmethod
    def from_record(cls, raw: Mapping[str, Any]) -> Job:
        """Parse a job's record. None and unknown fields are ignored.

        Raises:
            LookupError, TypeError, ValueError: It is not the record of a job in this format.
        """
        if raw["format"] != FORMAT:
            raise ValueError("it was written by another version of trainium-cdk")
        known = {member.name for member in fields(cls)}
        values = {name: value for name, value in raw.items() if name in known and value is not None}
        for name, value in values.items():
            if not _has_type(value, cls.__annotations__[name]):
                raise ValueError(f"{name} is {value!r}")
        for name in ("id", "resume_from"):
            # They become part of paths.
            if name in values and not is_job_id(values[name]):
                raise ValueError(f"{name} is {values[name]!r}, which is not a valid job ID")
        if values["nodes"] < 1:
            raise ValueError(f"nodes is {values['nodes']}")
        for name in ("retry_on_exit_codes", "profile"):
            values[name] = tuple(values.get(name, ()))
        return cls(**values)

    @property
    def world_size(self) -> int | None:
        """The number of processes of all nodes; None if the command decides it."""
        return self.nodes * self.processes_per_node if self.has_ranks else None

    def checkpoints_folder(self, jobs_url: str) -> str:
        """S3 URL of the folder for the checkpoints of all jobs, which is by default the folder of all jobs."""
        return (self.checkpoints or jobs_url).rstrip("/")

    def may_restart(self, outcome: Outcome) -> bool:
        """Whether another attempt may follow an attempt with this end, if its number is within `retries`."""
        if not self.retries:
            return False
        code = outcome.exit_code
        # After a signal, exit codes are negative in Python, and 128 plus the signal's number in shells.
        shell_exit_code = 128 - code if code is not None and code < 0 else code
        return (
            outcome.result == NODE_LOST
            or (outcome.result == HUNG and self.retry_on_hang)
            or (outcome.result == FAILED and shell_exit_code in self.retry_on_exit_codes)
        )


def jobs_url(bucket: str) -> str:
    """S3 URL of the folder of all jobs."""
    return f"s3://{bucket}/{JOBS_PREFIX}"


@dataclass(frozen=True)
class Outcome:
    """The end of an attempt or a job.

    Attributes:
        result: One of RESULTS.
        instance_id: Instance that reported the end; empty if unknown.
        node: Rank of the node that reported the end; None if unknown.
        rank: Rank of the process that failed first; None if unknown.
        exit_code: Exit code of that process or of the command; None if no command ended.
    """

    result: str
    reason: str = ""
    traceback: str = ""
    instance_id: str = ""
    node: int | None = None
    rank: int | None = None
    exit_code: int | None = None
    at: datetime | None = None

    @property
    def is_success(self) -> bool:
        return self.result == SUCCEEDED

    @classmethod
    def from_record(cls, raw: Mapping[str, Any]) -> Outcome:
        """Parse the end that a node wrote. Texts are shortened; an unknown result counts as failed."""
        result = raw.get("result")
        return cls(
            result=cast(str, result) if result in RESULTS else FAILED,
            reason=one_line(_text(raw.get("reason")), _LONGEST_REASON),
            traceback=_printable(_text(raw.get("traceback")))[-_LONGEST_TRACEBACK:],
            instance_id=one_line(_text(raw.get("instance_id")), 32),
            node=_to_int(raw.get("node")),
            rank=_to_int(raw.get("rank")),
            exit_code=_to_int(raw.get("exit_code")),
            at=moment(raw.get("at")),
        )


def end_record(
    result: str,
    reason: str,
    *,
    instance_id: str = "",
    node: int | None = None,
    rank: int | None = None,
    exit_code: int | None = None,
    traceback: str | None = None,
) -> dict[str, Any]:
    """The end of an attempt, in the format that `Outcome.from_record` parses."""
    return {
        "result": result,
        "reason": reason,
        "traceback": traceback,
        "instance_id": instance_id,
        "node": node,
        "rank": rank,
        "exit_code": exit_code,
        "at": now_text(),
    }


def job_end_record(end: Mapping[str, Any], attempts: int) -> dict[str, Any]:
    """The end of a job, from the end of its last attempt."""
    return {**end, "attempts": attempts}


def start_record(
    number: int,
    nodes: Mapping[str, str],
    *,
    membership: str = "",
    submission: str = "",
    checkpoint: str | None = None,
    checkpoint_job: str | None = None,
    checkpoint_saved_at: str | None = None,
    seconds_left: float | None = None,
) -> dict[str, Any]:
    """The start of an attempt.

    Args:
        number: Number of the attempt, from 1.
        nodes: Addresses by instance ID, in the order of ranks.
        membership: Version of the membership.
        submission: A scheduler's name of the submission that begins the attempt.
        checkpoint: Name of the checkpoint that the attempt continues from.
        checkpoint_job: Job that saved the checkpoint.
        checkpoint_saved_at: When its manifest was written.
        seconds_left: Remaining seconds of the job's time limit; None without one.
    """
    return {
        "attempt": number,
        "at": now_text(),
        "membership": membership,
        "submission": submission,
        "nodes": [{"instance_id": instance, "address": address} for instance, address in nodes.items()],
        "resume_from": checkpoint,
        "resume_job": checkpoint_job if checkpoint else None,
        "resume_saved_at": checkpoint_saved_at if checkpoint else None,
        "seconds_left": seconds_left,
    }


def checkpoint_part(attempt: int, rank: int, version: int) -> str:
    """The name of a node's part of a checkpoint.

    Args:
        attempt: Number of the attempt.
        rank: Rank of the node.
        version: How many checkpoints of this name the node has stored in the attempt, including this one.
    """
    return f"{attempt}-{rank}-{version}"


def part_rank(part: str) -> int:
    """The rank of the node that stored a part."""
    return int(part.split("-")[1])


def part_version(part: str) -> int:
    return int(part.split("-")[2])


def saved_otherwise(manifest: Mapping[str, Any], job: Job) -> str:
    """How the number of processes or nodes that saved a checkpoint differs from the job's; empty if it does not."""
    saved, own = _to_int(manifest.get("world_size")), job.world_size
    if saved is not None and own is not None:
        return f"was saved by {saved} process{'es' * (saved != 1)}, and this job has {own}" if saved != own else ""
    nodes = _to_int(manifest.get("nodes"))
    if nodes is None or nodes == job.nodes:
        return ""
    return f"was saved on {nodes} node{'s' * (nodes != 1)}, and this job has {job.nodes}"


def checkpoint_names(manifests: Mapping[str, Any]) -> list[str]:
    """The names of complete checkpoints, newest last, but first those without the number of a step.

    Libraries write the latter beside their checkpoints: README.md, training_args.bin, the final model. S3's times have
    whole seconds. Within a second, numbers in names decide: step-1000 follows step-200.

    Args:
        manifests: When each object in the folder of a job's checkpoints was written, by its key.
    """
    written = {key.rpartition("/")[2][: -len(".json")]: manifests[key] for key in manifests if key.endswith(".json")}
    return sorted(written, key=lambda name: (_has_step(name), written[name], _natural(name)))


def resumable_checkpoints(names: Iterable[str]) -> list[str]:
    """The names without those of logs and notes, from which no job resumes."""
    return [name for name in names if not _NOTE.fullmatch(name)]


def _has_step(name: str) -> bool:
    """Whether a name has a number, except in its suffix and in that of a part of a model (00001-of-00002)."""
    return re.search(r"\d", re.sub(r"\d+-of-\d+|\.[A-Za-z]\w*$", "", name)) is not None


def _natural(text: str) -> list[tuple[int, str]]:
    """A sort key that orders numbers by value."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)]


def _has_type(value: Any, annotation: str) -> bool:
    """Whether a JSON value has the type of a field. Lists contain integers, and objects contain strings."""
    name, _, item_types = annotation.replace(" | None", "").partition("[")
    if not isinstance(value, _TYPES[name]) or (isinstance(value, bool) and name != "bool"):
        return False
    if name == "Mapping":
        return all(isinstance(each, str) for each in cast("Mapping[str, Any]", value).values())
    numbers = cast("list[Any]", value)
    return name != "tuple" or all(_has_type(each, item_types.partition(",")[0]) for each in numbers)


def _text(raw: object) -> str:
    return raw if isinstance(raw, str) else ""


def _to_int(raw: object) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() or character in "\n\t" else " " for character in text)
