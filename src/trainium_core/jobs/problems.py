"""Problems of a training job, in the same form as problems of a plan."""

from dataclasses import dataclass

from trainium_core.problems import PlanError, Problem


@dataclass(frozen=True, kw_only=True)
class JobProblem(Problem):
    """A reason why a job cannot start. Problems of the plan's settings are of the class Problem.

    Attributes:
        key: The option, the key of the job file, or the setting with its prefix, as messages show it.
    """

    @property
    def shown_key(self) -> str:
        return self.key


class JobError(PlanError):
    """A training job that cannot start.

    Attributes:
        problems: All problems of the job and of the plan.
    """

    def __str__(self) -> str:
        count = len(self.problems)
        head = f"The training job has {count} problem{'s' if count > 1 else ''}; nothing was started.\n"
        return head + "\n".join(f"\n  {problem}" for problem in self.problems) + "\n"
