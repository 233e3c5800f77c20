"""How a mistake in the use of a construct is reported: path, parameter, value, what is allowed, what to do."""

import re
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager

from constructs import IConstruct, Node

from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.problems import PlanError, Problem

_PARAMETERS = {
    "ami": "machine_image",
    "availability_zone_id": "vpc_subnets",
    "cache_expiration_days": "expiration",
    "efs": "file_systems",
    "fsx_lustre": "file_systems",
    "node_generation": "generation",
    "node_recovery": "replacements",
    "node_replacements": "replacements",
    "node_timeout_minutes": "timeout",
    "region": "the region of the stack",
    "reservation_id": "capacity",
    "root_volume_gib": "root_volume_size",
    "root_volume_initialization": "root_volume_initialization_rate",
    "sagemaker_budget_hours": "budget",
    "sagemaker_capacity_retries": "capacity_retries",
    "sagemaker_image": "image",
    "sagemaker_report_email": "report_email",
    "setup_script": "setup",
    "subnet_id": "vpc_subnets",
    "vpc_cidr": "cidr",
    "vpc_id": "vpc",
    "warning_hours": "warning",
}
"""Parameters of constructs by the settings of a plan that they become, where the names differ."""


class PropsError(ValueError):
    """Parameters that a construct cannot be made of; the message says what is wrong with each and what to do.

    path: of the construct. problems: all that was found, the `key` of each is the name of the parameter.
    """

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.path, self.problems = path, tuple(problems)
        super().__init__(path, self.problems)

    def __str__(self) -> str:
        return "\n".join(f"{self.path}: {_as_line(problem)}" for problem in self.problems)


def refuse(construct: IConstruct, parameter: str, got: object, *, allowed: str, fix: str) -> PropsError:
    """The error for one parameter. got: shown by its path where it is a construct."""
    node = getattr(got, "node", None)
    shown = node.path if isinstance(node, Node) else got
    return PropsError(construct.node.path, [Problem(key=parameter, got=shown, allowed=allowed, fix=fix)])


def first_line(error: Exception) -> str:
    """What the CDK says in an error, without the trace of its own that follows."""
    return str(error).partition("\n")[0]


def parameter_of(setting: str) -> str:
    """The parameter of a construct that becomes a setting of the plan."""
    return _PARAMETERS.get(setting, setting)


@contextmanager
def errors_of_parameters(
    construct: IConstruct, names: Callable[[str], str] = parameter_of, given: Mapping[str, object] | None = None
) -> Generator[None]:
    """Raise PropsError where a PlanError is raised: for whoever gives parameters there are no settings.

    names: the parameter of a setting. given: what was given for parameters, where a setting holds it in another form.
    """
    try:
        yield
    except PlanError as error:
        problems = [_of_parameters(problem, names, given or {}) for problem in error.problems]
        raise PropsError(construct.node.path, problems) from None


def _of_parameters(problem: Problem, names: Callable[[str], str], given: Mapping[str, object]) -> Problem:
    key = names(problem.key)
    return Problem(
        key=key,
        got=given.get(key, problem.got),
        allowed=in_python(problem.allowed, names),
        nearest=problem.nearest,
        fix=in_python(problem.fix, names),
    )


def in_python(text: str, names: Callable[[str], str] = parameter_of) -> str:
    """A text about settings as one about parameters. names: the parameter of a setting."""

    def parameter(found: re.Match[str]) -> str:
        if found[1] not in SETTINGS:
            return found[0]  # such as the tag trn:cluster
        value = {"=on": "=True", "=off": "=False"}.get(found[2], found[2])
        return names(found[1]) + value

    text = re.sub(r"trn:([a-z_]+)((?:=(?:on|off)\b)?)", parameter, text)
    return text.replace("leave the setting out", "leave it out").replace("the plan's region", "the stack's region")


def _as_line(problem: Problem) -> str:
    nearest = f" (nearest: {problem.nearest})" if problem.nearest else ""
    got = "None" if problem.got is None else _shortened(repr(problem.got))
    return f"{problem.key}: got {got}; allowed: {problem.allowed}{nearest}; fix: {problem.fix}"


def _shortened(text: str, longest: int = 120) -> str:
    return text if len(text) <= longest else f"{text[: longest // 2]} ... {text[-longest // 3 :]}"
