"""Problems of a training job, in the form of a plan's problems, with an option in place of a setting."""

from dataclasses import dataclass

from trainium_core.problems import PlanError, Problem


@dataclass(frozen=True, kw_only=True)
class JobProblem(Problem):
    """A reason why a job cannot start. `key`: an option, or a key of the request, as it was written.

    A problem of a plan's setting stays a Problem.
    """

    @property
    def shown_key(self) -> str:
        return self.key


class JobError(PlanError):
    """A training job that cannot start. `problems`: all problems of job and plan."""

    def __str__(self) -> str:
        count = len(self.problems)
        head = f"The training job has {count} problem{'s' if count > 1 else ''}; nothing was started.\n"
        return head + "\n".join(f"\n  {problem}" for problem in self.problems) + "\n"
