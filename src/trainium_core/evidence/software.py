"""The software of a side, from the records of its nodes and the state of a job."""

import re
from collections.abc import Iterable, Mapping

from trainium_core.catalog.neuron_software import frameworks
from trainium_core.evidence.record import Software
from trainium_core.jobs.progress import JobState
from trainium_wire.cache_place import RELEASE_PREFIX
from trainium_wire.node_record import StoredRecord

_DRIVER, _RUNTIME = re.compile(r"driver ([0-9][\w.-]*)"), re.compile(r"runtime ([0-9][\w.-]*)")
_ENVIRONMENT = re.compile(r"aws_neuronx_venv_(?P<name>[a-z_]+?)_(?P<version>[0-9]+(?:_[0-9]+)+)")


def job_software(
    state: JobState, records: Mapping[str, StoredRecord], *, git_commit: str | None, git_dirty: bool | None
) -> Software:
    """The software of a job's last attempt.

    The version of PyTorch is that of the environment in which the nodes were verified. It is unknown if the job uses
    another stack, or if the environment is for JAX.
    """
    attempt = state.attempts[-1] if state.attempts else None
    used = [
        records[instance_id].record
        for instance_id in (attempt.instance_ids if attempt else ())
        if instance_id in records
    ]
    found_by_check = {
        name: [check.found for record in used for check in record.checks if check.name == name] for name in _CHECKS
    }
    environments = [match for text in found_by_check["framework"] if (match := _ENVIRONMENT.fullmatch(text))]
    stacks = _stacks()
    same_stack = [
        environment for environment in environments if state.job.stack in (None, stacks.get(environment["name"]))
    ]
    releases = [use.place.partition("/")[0] for node in (attempt.nodes if attempt else ()) for use in node.caches]
    return Software(
        stack=state.job.stack,
        torch=_joined(
            environment["version"].replace("_", ".")
            for environment in same_stack
            if stacks.get(environment["name"]) != "jax"
        ),
        environment=_joined(environment[0] for environment in environments),
        compiler=_joined(
            release.removeprefix(RELEASE_PREFIX) for release in releases if release.startswith(RELEASE_PREFIX)
        ),
        driver=_joined(match[1] for text in found_by_check["driver"] if (match := _DRIVER.match(text))),
        runtime=_joined(match[1] for text in found_by_check["driver"] if (match := _RUNTIME.search(text))),
        git_commit=git_commit,
        git_dirty=git_dirty,
    )


def software_stack(software: Software) -> str | None:
    """The key of the software stack: as the job states, or that of its environment; None if unknown."""
    environment = _ENVIRONMENT.search(software.environment or "")
    return software.stack or (_stacks().get(environment["name"]) if environment else None)


def _stacks() -> Mapping[str, str]:
    """The software stacks on Neuron images, by a part of the names of their environments."""
    return {framework.environment: framework.stack for framework in frameworks().values() if not framework.gpus}


_CHECKS = ("driver", "framework")


def _joined(values: Iterable[str]) -> str | None:
    return " and ".join(dict.fromkeys(values)) or None
