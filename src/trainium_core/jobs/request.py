"""The request for one job, from the options of `trn run` or from a job file."""

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from trainium_core.catalog.neuron_software import frameworks
from trainium_core.jobs.problems import JobError, JobProblem
from trainium_core.jobs.request_forms import S3_URL, Inputs, SecretArns, Text, Texts, Variables, YesNo
from trainium_core.naming import CONSTRUCT_IDS, SLURM
from trainium_core.plan.settings.jobs import S3_FOLDER
from trainium_core.problems import nearest
from trainium_core.setting_schema.forms import Choice, FilePath, Form, ListOf, Pattern, UnreadableError, WholeNumber
from trainium_core.setting_schema.setting import METADATA_KEY, Setting, section, setting
from trainium_wire.job import ALL_FILES, CHECKPOINT_SECONDS, OWN_FILES

LONGEST_NAME = 40

_MAX_MINUTES = 60 * 24 * 7


@section
class JobRequest:
    """The request for one job. Each field is a key of a job file; most are also options of `trn run`."""

    script: Path | None = setting(
        "script",
        FilePath("the path of a Python script that exists"),
        meaning="Path of the training script, relative to the source directory, the working directory or the job file; "
        "torchrun starts it with one process for each logical NeuronCore or GPU of each node.",
        default=None,
    )
    command: str | None = setting(
        "command",
        Text("a bash command, such as 'python -m evaluate'"),
        meaning="Bash commands that each node runs instead of a script under torchrun. The job fails if one of them "
        "fails, also in a pipeline.",
        default=None,
    )
    arguments: tuple[str, ...] = setting(
        "arguments", Texts("a list of strings"), meaning="Arguments of the script.", default=()
    )
    on: str | None = setting(
        "on",
        Choice((*CONSTRUCT_IDS, SLURM)),
        meaning="Engine of the job: a key of trn:stacks, or slurm for pcs.",
        default=None,
        default_text="the cluster, or the first of trn:stacks without one",
    )
    source: str | None = setting(
        "source",
        Text("the path of a directory"),
        meaning="Directory that is packed, and that every node unpacks.",
        default=None,
        default_text="only the script",
    )
    name: str | None = setting(
        "name",
        Pattern(
            rf"[a-z0-9]([a-z0-9-]{{0,{LONGEST_NAME - 2}}}[a-z0-9])?",
            f"up to {LONGEST_NAME} lowercase letters, digits and hyphens, beginning and ending with a letter or digit",
        ),
        meaning="Prefix of the job's ID, which ends with the time.",
        default=None,
        default_text="the script's name",
    )
    nodes: int | None = setting(
        "nodes",
        WholeNumber(1),
        meaning="Number of the cluster's nodes for the job.",
        default=None,
        default_text="all of them",
    )
    queue: str | None = setting(
        "queue",
        Pattern(r"[A-Za-z0-9_-]{1,128}", "the name of a queue"),
        meaning="Queue of Slurm, AWS Batch (SageMaker) or Kueue (EKS) in which the job waits. Not on a cluster.",
        default=None,
        default_text="the first of trn:pcs_queues, the queue of the SageMaker stack, or on EKS none",
    )
    priority: int = setting(
        "priority",
        WholeNumber(0, 100_000),
        meaning="In a queue, jobs with a higher priority start first. Not on a cluster.",
        default=0,
    )
    setup: str | None = setting(
        "setup",
        Text("a bash command, such as 'pip install --no-index wheels/*.whl'"),
        meaning="Bash commands that each node runs at every start before the script or command, in the source folder. "
        "The job fails if one of them fails, also in a pipeline.",
        default=None,
    )
    environment: Mapping[str, str] = setting(
        "environment",
        Variables(),
        meaning="Environment variables of the job. Not for secrets: everyone with access to the job's record can read "
        "the values.",
        default_factory=dict[str, str],
        default_text="none",
    )
    secrets: Mapping[str, str] = setting(
        "secrets",
        SecretArns(),
        meaning="Environment variables whose values the nodes read from Secrets Manager or Parameter Store, by ARN; "
        "trn:job_secrets lists the allowed ARNs.",
        default_factory=dict[str, str],
        default_text="none",
    )
    inputs: Mapping[str, str] = setting(
        "inputs",
        Inputs(),
        meaning="Data that every node downloads into TRN_INPUT_DIR before the job starts, by name: S3 URLs in a folder "
        "of trn:job_inputs, or local paths, which are uploaded.",
        default_factory=dict[str, str],
        default_text="none",
    )
    checkpoints: str | None = setting(
        "checkpoints",
        Pattern(S3_FOLDER, "a folder in S3, such as s3://my-models/checkpoints"),
        meaning="Folder in S3 for checkpoints, in a subfolder for each job: trn:job_checkpoints, or a folder below it.",
        default=None,
        default_text="trn:job_checkpoints, else the cluster's bucket",
    )
    retries: int = setting(
        "retries",
        WholeNumber(0, 100),
        meaning="Maximum number of restarts without a new complete checkpoint in between, after the loss of a node, a "
        "hang or an exit code of retry_on_exit_codes.",
        default=2,
    )
    retry_on_exit_codes: tuple[int, ...] = setting(
        "retry_on_exit_codes",
        ListOf(WholeNumber(1, 255), "a list of exit codes from 1 to 255, such as [75, 137]"),
        meaning="Exit codes of the script or command that also cause a restart.",
        default=(),
        default_text="none",
    )
    retry_on_hang: bool = setting(
        "retry_on_hang", YesNo(), meaning="Whether a hang causes a restart.", default=True, default_text="true"
    )
    hang_minutes: int | None = setting(
        "hang_minutes",
        WholeNumber(1, _MAX_MINUTES),
        meaning="Minutes without output from the first node after which the job counts as hung, unless a compiler "
        "runs.",
        default=None,
        default_text="never",
    )
    time_limit_minutes: int | None = setting(
        "time_limit_minutes",
        WholeNumber(1, _MAX_MINUTES),
        meaning="Time limit of the job in minutes from its first start, including restarts and waits for nodes.",
        default=None,
        default_text="no limit; on SageMaker trn:sagemaker_max_runtime_hours",
    )
    checkpoint_seconds: int = setting(
        "checkpoint_seconds",
        WholeNumber(1, 3600),
        meaning="Seconds between checks for new checkpoints, which are copied to S3.",
        default=CHECKPOINT_SECONDS,
    )
    outputs: str | None = setting(
        "outputs",
        Text("the path of a folder"),
        meaning="Folder on this machine; `trn run` downloads the outputs into FOLDER/JOB when the job has ended.",
        default=None,
    )
    framework: str | None = setting(
        "framework",
        Choice(tuple(frameworks())),
        meaning="Framework whose environment is activated, of those on the nodes' image.",
        default=None,
        default_text="that of the image's SSM parameter, else the image's first",
    )
    compile_cache: bool = setting(
        "compile_cache", YesNo(), meaning="Whether the job uses the compile cache.", default=True, default_text="true"
    )
    observe: bool = setting(
        "observe",
        YesNo(),
        meaning="Whether the job reports counters of the frameworks: operators on the CPU, compilations and their "
        "reasons, compiler errors. Not for timing.",
        default=False,
        default_text="false",
    )
    profile: tuple[int, ...] = setting(
        "profile",
        ListOf(WholeNumber(0), "a list of ranks, such as [0, 32]"),
        meaning="Ranks whose Neuron runtime writes a profile into the job's outputs; for a command, ranks of nodes. "
        "Not for timing.",
        default=(),
        default_text="none",
    )
    profile_device: bool = setting(
        "profile_device",
        YesNo(),
        meaning="Whether profiles include traces of the devices, which take device memory and disk space.",
        default=False,
        default_text="false",
    )
    training_plan: str | None = setting(
        "training_plan",
        Text("the ARN of a training plan"),
        meaning="Run in a training plan that was bought for training jobs. SageMaker only.",
        default=None,
    )
    spot_wait_minutes: int | None = setting(
        "spot_wait_minutes",
        WholeNumber(0, _MAX_MINUTES),
        meaning="Minutes that the job may wait for spot capacity, in addition to its time limit. SageMaker only.",
        default=None,
        default_text="as long as the time limit",
    )
    warm_pool_minutes: int = setting(
        "warm_pool_minutes",
        WholeNumber(0),
        meaning="Minutes that the instances are kept, and billed, for the next job. SageMaker only.",
        default=0,
    )
    input_mode: str = setting(
        "input_mode",
        Choice(("File", "FastFile")),
        meaning="Whether inputs are copied before the start, or streamed from S3. SageMaker only.",
        default="File",
    )
    resume_files: str = setting(
        "resume_files",
        Choice((ALL_FILES, OWN_FILES)),
        meaning="Which files of a checkpoint each node gets when the job resumes: those of all nodes, or its own and "
        "those of node 0.",
        default=ALL_FILES,
    )
    resume: str | None = setting(
        "resume",
        Text("the ID of an earlier job of the cluster; `trn jobs` lists them"),
        meaning="Continue from the last checkpoint of an earlier job.",
        default=None,
    )

    @property
    def uploads(self) -> Mapping[str, Path]:
        """The local inputs."""
        return {name: Path(place) for name, place in self.inputs.items() if not place.startswith(S3_URL)}


def job_settings() -> tuple[Setting, ...]:
    """Every key of a job file. Messages list problems in this order."""
    return tuple(declared.metadata[METADATA_KEY] for declared in fields(JobRequest))


def read_job_file(path: Path) -> dict[str, Any]:
    """The keys and unparsed values of a job file.

    Paths in the file are relative to its folder, and become absolute. The script may also be relative to the source
    directory.

    Raises:
        JobError: The file cannot be read, or is not TOML.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(
            [_file_problem(path, "a file that can be read", f"specify the path of a readable file: {error}")]
        ) from error
    except (ValueError, RecursionError) as error:
        raise JobError([_file_problem(path, "TOML", f"correct the file: {error}")]) from error
    # Absolute, so later joins do not change them.
    folder = path.parent.absolute()
    for key in ("source", "outputs"):
        if isinstance(raw.get(key), str):
            raw[key] = str(folder / raw[key])
    if isinstance(raw.get("script"), str):
        raw["script"] = str(folder / _script_in_source(raw)["script"])
    if isinstance(raw.get("inputs"), dict):
        raw["inputs"] = {name: _input_from(folder, place) for name, place in raw["inputs"].items()}
    return raw


def _input_from(folder: Path, place: object) -> object:
    return str(folder / place) if isinstance(place, str) and not place.startswith(S3_URL) else place


def job_request(raw: Mapping[str, Any], *, shown: Mapping[str, str] | None = None) -> JobRequest:
    """Parse a request.

    Args:
        raw: Unparsed values by key.
        shown: Names of keys in messages, such as --nodes. Default: the keys.

    Raises:
        JobError: All problems of the request. Contradictions between keys are reported only if every value is valid.
    """
    known = {declared.key: declared for declared in job_settings()}
    names = {key: key for key in known} | dict(shown or {})
    problems = [_unknown(key, value, known) for key, value in raw.items() if key not in known]
    values: dict[str, Any] = {}
    raw = _script_in_source(raw)
    for key, declared in known.items():
        if raw.get(key) is not None:
            try:
                values[key] = declared.form.read(raw[key])
            except UnreadableError as error:
                got = _without_values(raw[key]) if key == "secrets" else raw[key]
                problems.append(_unreadable(names[key], got, declared.form, str(error)))
    if not problems:
        problems += _contradictions(values, names)
    if problems:
        raise JobError(problems)
    return JobRequest(**values)


def _script_in_source(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values, with the path of a script that exists below the source directory."""
    script, source = raw.get("script"), raw.get("source")
    if isinstance(script, str) and isinstance(source, str):
        inside = Path(source) / script
        with suppress(OSError):  # such as a name longer than the file system allows
            if inside.is_file():
                return {**raw, "script": str(inside)}
    return raw


def _contradictions(values: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[JobProblem]:
    if ("script" in values) == ("command" in values):
        both = "script" in values
        fix = f"remove {names['command']} or {names['script']}" if both else f"specify {names['script']}"
        yield JobProblem(
            key=names["script"],
            got=str(values["script"]) if both else None,
            allowed=f"one of {names['script']} and {names['command']}",
            fix=fix,
        )
    if "command" in values and values.get("arguments"):
        yield JobProblem(
            key=names["arguments"],
            got=list(values["arguments"]),
            allowed=f"no value together with {names['command']}",
            fix="write them into the command",
        )
    if "command" in values and not {"name", "script"} & {*values}:
        fix = f"specify {names['name']}: there is no script to name it after"
        yield JobProblem(key=names["name"], got=None, allowed="the name of the job", fix=fix)
    if values.get("profile_device") and not values.get("profile"):
        fix = f"specify {names['profile']} too"
        allowed = f"only with {names['profile']}"
        yield JobProblem(key=names["profile_device"], got=True, allowed=allowed, fix=fix)
    for name in {*values.get("secrets", ())} & {*values.get("environment", ())}:
        fix = f"remove it from {names['environment']}"
        yield JobProblem(
            key=names["secrets"], got=name, allowed=f"no name that is also in {names['environment']}", fix=fix
        )


def _unknown(key: str, value: object, known: Mapping[str, Setting]) -> JobProblem:
    close = nearest(key, tuple(known))
    fix = f"call it {close}" if close else "remove it"
    return JobProblem(key=key, got=value, allowed=", ".join(known), nearest=close, fix=fix)


def _without_values(secrets: object) -> str:
    """The names of secrets, whose values must not appear in a message: they may be the secrets themselves."""
    if not isinstance(secrets, Mapping):
        return "a value that is not a table"
    return ", ".join(map(str, cast("Mapping[object, object]", secrets)))


def _unreadable(key: str, raw: object, form: Form, fix: str) -> JobProblem:
    close = nearest(raw, form.choices) if isinstance(raw, str) and form.choices else None
    return JobProblem(key=key, got=raw, allowed=form.allowed, nearest=close, fix=fix)


def _file_problem(path: Path, allowed: str, fix: str) -> JobProblem:
    return JobProblem(key=str(path), got=path.name, allowed=allowed, fix=fix)
