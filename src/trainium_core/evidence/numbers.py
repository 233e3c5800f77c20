"""Numbers and names of records as text."""

from math import floor, isfinite, log10

_LEAST, _THOUSAND, _BILLION = 1e-4, 1e3, 1e9


def number(value: float) -> str:
    """Four significant digits, or a whole number from 1,000 to 1e9: 0.02346, 12.5, 52,123, 1.5e12."""
    if not isfinite(value):
        return "not a number"
    if value == 0:
        return "0"
    if not _LEAST <= abs(value) < _BILLION:
        return f"{value:.4g}".replace("e+", "e")
    if float(f"{abs(value):.4g}") >= _THOUSAND:
        return f"{value:,.0f}"
    digits = max(0, 3 - floor(log10(abs(value))))
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def words(name: str) -> str:
    """The name of a metric, such as usd_per_hour, in words."""
    return " ".join(word.upper() if word in ("usd", "mfu") else word for word in name.split("_"))
