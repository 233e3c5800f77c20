"""The script that each node of a job runs, for review before the job starts."""

from collections.abc import Iterator, Mapping

from trainium_wire.job import Job
from trainium_wire.job_folders import FOLDER_VARIABLES, quoted

_FAIL_ON_ERROR = "set -eo pipefail"
_ON_EVERY_NODE = {
    "PYTHONFAULTHANDLER": "1",
    "PYTHONUNBUFFERED": "1",
    "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank ${rank}] ",
    "PET_TEE": "3",
}


def node_script(job: Job) -> str:
    """The script of a job. Comments describe the values that are set on the node."""
    lines = [_FAIL_ON_ERROR, *_exports({**_ON_EVERY_NODE, **job.environment}), *_commands(job)]
    return "\n".join([*_comments(job), *lines])


def _comments(job: Job) -> Iterator[str]:
    stack = f"the framework {job.stack}" if job.stack else "the node's default framework"
    count = "the node" if job.nodes == 1 else f"each of the {job.nodes} nodes"
    yield f"# Runs on {count} with bash -l, as the user trn-job."
    yield f"# The profile activates the environment of {stack}, and sets the variables of Neuron, EFA and the cluster."
    yield "# The working directory contains the unpacked source."
    if job.compile_cache:
        yield "# The compile cache is downloaded first, and new entries are stored while the job runs and at its end."
    if job.observe:
        yield "# PYTHONPATH begins with the observer, and TRN_OBSERVE_DIR, TORCH_LOGS and PT_XLA_DEBUG_LEVEL are set."
    if job.profile:
        what = "rank" if job.has_ranks else "node"
        ranks = ", ".join(map(str, job.profile))
        yield f"# NEURON_RT_INSPECT_* is set on {what} {ranks}: a profile goes to $TRN_OUTPUT_DIR/profile."
    if job.setup:
        yield "# The setup runs first, then the command, each with these variables."
    for name, text in _set_on_the_node(job).items():
        yield f"# {name}: {text}"
    for name, arn in job.secrets.items():
        yield f"# {name} is the value of {arn}, only in the environment."
    for name, url in job.inputs.items():
        yield f"# $TRN_INPUT_DIR/{name} is {url if '://' in url else f'{url} of the job'}."
    if job.checkpoints:
        yield f"# Checkpoints are stored in {job.checkpoints}/{job.id}/checkpoints."


def _set_on_the_node(job: Job) -> Mapping[str, str]:
    ranks = "0" if job.nodes == 1 else f"0 to {job.nodes - 1}, the position of the node in the membership"
    return {
        "TRN_JOB": job.id,
        "TRN_ATTEMPT": "1, and one more after each restart",
        "TRN_NODES": str(job.nodes),
        "TRN_NODE_RANK": ranks,
        "HEAD_NODE": "the address of node 0",
        **{variable: f"the folder of the attempt's {name}, ../{name}" for name, variable in FOLDER_VARIABLES.items()},
        "TRN_RESUME_FROM": "the folder of the checkpoint to continue from, if any",
        "PET_LOG_DIR": "the folder of torchrun's logs",
    }


def _exports(variables: Mapping[str, str]) -> Iterator[str]:
    return (f"export {name}={quoted(value)}" for name, value in variables.items())


def _commands(job: Job) -> Iterator[str]:
    if job.setup:
        yield job.setup
    yield job.command
