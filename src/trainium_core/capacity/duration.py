"""How long a Capacity Block can be."""

from trainium_core.facts import facts

HOURS_PER_DAY = 24


def block_durations() -> tuple[int, ...]:
    """Every length in hours: by the day at first, by the week after that."""
    rule = facts()["capacity_blocks"]
    by_day, by_week = rule["longest_in_days_by_day"], rule["longest_in_days_by_week"]
    days = [*range(1, by_day + 1), *range(by_day + 7, by_week + 1, 7)]
    return tuple(day * HOURS_PER_DAY for day in days)


def allowed_durations() -> str:
    """The same in words."""
    rule = facts()["capacity_blocks"]
    by_day, by_week = (rule[key] * HOURS_PER_DAY for key in ("longest_in_days_by_day", "longest_in_days_by_week"))
    return f"whole days ({HOURS_PER_DAY}, {2 * HOURS_PER_DAY}, ... {by_day}), then whole weeks up to {by_week}"


def nearest_duration(hours: int) -> int:
    """The shortest block that is long enough, else the longest there is."""
    durations = block_durations()
    return next((duration for duration in durations if duration >= hours), durations[-1])
