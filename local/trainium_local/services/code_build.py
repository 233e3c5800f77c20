"""CodeBuild projects of a pipeline, which passes sources and artifacts on and is their only location."""

from typing import Any


def validate_location(original: Any, given: dict[str, Any]) -> None:
    original({"location": "-", **given} if given.get("type") in ("CODEPIPELINE", "NO_SOURCE") else given)
