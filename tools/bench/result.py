"""What a benchmark found, beside its aim."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Result:
    """One figure with the most it is to be. `found` says it with its parts, `method` how it was come by."""

    name: str
    value: float
    aim: float
    found: str
    method: str

    @property
    def met(self) -> bool:
        return self.value <= self.aim
