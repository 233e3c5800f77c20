"""Things of a service that must be there already, or must not, for a resource to be created."""

from typing import Any

from trainium_local.resources.generic import STORE
from trainium_local.rules.rule import TEXTS, Place, Properties, listed, refusal


def check(resource_type: str, properties: Properties, place: Place) -> None:
    """Raise Refused for the first thing of [[existing]] that is missing, or there though it must not be."""
    for text in TEXTS["existing"]:
        if resource_type != text["type"] or (text.get("taken") and not place.new):
            continue
        among: Any = getattr(place.backend(text["service"]), text["among"])
        known: list[Any] = list(among.items() if isinstance(among, dict) else enumerate(among))
        others = {path: properties.get(name) for path, name in text.get("also", {}).items()} | text.get("is", {})
        for value in [one for one in listed(properties.get(text["property"])) if _same(one, False) is False]:
            wanted = {**others, text["by"]: value}
            found = any(all(_same(_part(one, path), it) for path, it in wanted.items()) for one in known)
            if found == text.get("taken", False) and not STORE.holds(place.region, str(value)):
                raise refusal(text, resource_type.split("::")[1], value)


def _part(item: tuple[Any, Any], path: str) -> Any:
    key, thing = item
    for step in path.split(".") if path != "key" else ():
        thing = thing.get(step) if isinstance(thing, dict) else getattr(thing, step, None)
        thing = thing() if callable(thing) else thing
    return key if path == "key" else thing


def _same(actual: Any, wanted: Any) -> bool:
    if isinstance(actual, list | set) or "dict_" in type(actual).__name__:
        return wanted in actual
    return str(actual).lower() == str(wanted).lower()
