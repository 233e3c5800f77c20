"""Messages about mistakes in a plan: the setting, its value, the allowed values, the nearest one, and the fix."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SETTING_PREFIX = "trn:"

WHOLE_FILE = "cdk.json"
"""Key of a problem of the whole file, not of a setting."""

OVERRIDE = "-c"
"""Key of a problem of an option `-c` without the name of a setting."""

_SHOWN = 120  # characters; longer values are shortened, for example a script that was given instead of its path


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A problem that prevents a deployment.

    Attributes:
        key: The name of a setting without its prefix; or WHOLE_FILE; or OVERRIDE.
        got: The value in the plan; None for a missing setting.
        allowed: The allowed values.
        nearest: The allowed value closest to the one in the plan, if any is close.
        fix: What to do.
    """

    key: str
    got: object
    allowed: str
    nearest: str | None = None
    fix: str

    @property
    def shown_key(self) -> str:
        return self.key if self.key in (WHOLE_FILE, OVERRIDE) else SETTING_PREFIX + self.key

    def __str__(self) -> str:
        suggestion = f"; nearest: {self.nearest}" if self.nearest else ""
        got = "nothing" if self.got is None else _shortened(repr(self.got))
        head = f"{self.shown_key}: got {got}\n    allowed: {self.allowed}{suggestion}"
        return f"{head}\n    fix:     {_shortened(self.fix, 400)}"


class PlanError(ValueError):
    """A plan cannot be deployed.

    Attributes:
        problems: The problems that were found.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        count = len(self.problems)
        head = f"The plan has {count} problem{'s' if count > 1 else ''}; nothing was deployed.\n"
        return head + "\n".join(f"\n  {problem}" for problem in self.problems) + "\n"


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word closest to `word`, ignoring case; None if none is close."""
    from difflib import get_close_matches  # late: only mistakes need it

    by_folded = {name.casefold(): name for name in known}
    matches = get_close_matches(word.strip().casefold(), by_folded, n=1, cutoff=0.55)
    return by_folded[matches[0]] if matches else None


def _shortened(text: str, longest: int = _SHOWN) -> str:
    return text if len(text) <= longest else f"{text[: longest // 2]} ... {text[-longest // 3 :]}"
