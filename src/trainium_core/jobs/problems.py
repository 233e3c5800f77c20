"""How a mistake in a training job is told: as one in a plan is, with the name of an option in place of a setting."""

from dataclasses import dataclass

from trainium_core.problems import PlanError, Problem


@dataclass(frozen=True, kw_only=True)
class JobProblem(Problem):
    """One thing that keeps a job from being started. `key` is an option, or a member of the request, as it is written.

    A mistake in a setting of the plan stays a Problem.
    """

    @property
    def shown_key(self) -> str:
        return self.key


class JobError(PlanError):
    """A training job that cannot be started. `problems` holds all that was found, in job and plan."""

    def __str__(self) -> str:
        count = len(self.problems)
        head = f"The training job has {count} problem{'s' if count > 1 else ''}; nothing was started.\n"
        return head + "\n".join(f"\n  {problem}" for problem in self.problems) + "\n"
