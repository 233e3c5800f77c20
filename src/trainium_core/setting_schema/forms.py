"""The forms of settings: which values a setting accepts, and how text of `-c` or JSON of cdk.json becomes a value."""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, cast

from trainium_core.problems import nearest


def read_duration(text: str, units: Mapping[str, timedelta]) -> timedelta | None:
    """Parse a duration such as 40h: a number of up to five digits, and a unit.

    Args:
        text: The text of the duration.
        units: The length of each unit, by its letter.

    Returns:
        The duration; None for text without this form.
    """
    match = re.fullmatch(rf"([0-9]{{1,5}})\s*([{''.join(units)}])", text)
    return int(match[1]) * units[match[2]] if match else None


ON, OFF = "on", "off"
_MOST_DIGITS = 18


class UnreadableError(ValueError):
    """A value does not have the form of its setting. The message says how to correct it."""


class Form(Protocol):
    """The form of a value in a file or on the command line."""

    @property
    def allowed(self) -> str:
        """The allowed values, for messages."""
        ...

    @property
    def choices(self) -> tuple[str, ...]:
        """Values to suggest for a misspelt one; empty if the form has no list of values."""
        ...

    def read(self, raw: Any) -> Any:
        """Parse a value, which is always text with `-c`. Raises UnreadableError."""
        ...


class SettingForm(Form, Protocol):
    """The form of a plan's setting, whose value may also come from Python code."""

    def check(self, value: Any) -> None:
        """Check a value of Python code. Raises UnreadableError."""
        ...


def check_type(value: Any, expected: type) -> None:
    """Raise UnreadableError for a value of another type."""
    if type(value) is not expected:
        raise UnreadableError(f"pass a value of type {expected.__name__}")


def as_written(value: Any) -> Any:
    """A value as in cdk.json: a boolean is `on` or `off`."""
    return {True: ON, False: OFF}[value] if isinstance(value, bool) else value


@dataclass(frozen=True)
class WholeNumber:
    smallest: int
    largest: int | None = None
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        if self.largest is None:
            return f"a whole number, {self.smallest} or more"
        return f"a whole number from {self.smallest} to {self.largest}"

    def read(self, raw: Any) -> int:
        text = str(raw).strip()
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise UnreadableError(f"write a whole number in digits, such as {max(self.smallest, 1)}")
        if len(text) > _MOST_DIGITS:
            raise UnreadableError(f"write at most {_MOST_DIGITS} digits")
        number = int(text)
        self.check(number)
        return number

    def check(self, value: Any) -> None:
        check_type(value, int)
        if value < self.smallest or (self.largest is not None and value > self.largest):
            raise UnreadableError(f"choose {self.allowed}")


@dataclass(frozen=True)
class Choice:
    choices: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return ", ".join(self.choices)

    def read(self, raw: Any) -> str:
        self.check(raw)
        return cast(str, raw)

    def check(self, value: Any) -> None:
        if value not in self.choices:
            raise UnreadableError("choose one of the allowed values, spelt exactly")


@dataclass(frozen=True)
class Switch:
    """`on` or `off`; the value is a boolean."""

    choices: tuple[str, ...] = (ON, OFF)

    @property
    def allowed(self) -> str:
        return ", ".join(self.choices)

    def read(self, raw: Any) -> bool:
        return Choice(self.choices).read(raw) == ON

    def check(self, value: Any) -> None:
        check_type(value, bool)


@dataclass(frozen=True)
class SizeOrId:
    """The size of a new resource (`smallest`, or a multiple of `step`), or the ID of an existing one."""

    smallest: int
    step: int
    regex: str
    allowed: str
    choices: tuple[str, ...] = ()

    def read(self, raw: Any) -> int | str:
        text = str(raw).strip()
        value = int(text) if re.fullmatch("[0-9]{1,9}", text) else text
        self.check(value)
        return value

    def check(self, value: Any) -> None:
        if type(value) is int:
            fits = value > 0 and (value == self.smallest or value % self.step == 0)
        else:
            fits = isinstance(value, str) and re.fullmatch(self.regex, value)
        if not fits:
            raise UnreadableError(f"specify {self.allowed}")


@dataclass(frozen=True)
class Pattern:
    """Text that matches a regular expression completely."""

    regex: str
    allowed: str
    choices: tuple[str, ...] = ()

    def read(self, raw: Any) -> str:
        self.check(raw)
        return cast(str, raw)

    def check(self, value: Any) -> None:
        if not isinstance(value, str) or not re.fullmatch(self.regex, value):
            raise UnreadableError(f"specify {self.allowed}")


@dataclass(frozen=True)
class Address:
    """An IPv4 address."""

    allowed: str = "an IPv4 address, such as 10.0.0.2"
    choices: tuple[str, ...] = ()

    def read(self, raw: Any) -> str:
        text = str(raw)
        self.check(text)
        return text

    def check(self, value: Any) -> None:
        check_type(value, str)
        try:
            ipaddress.IPv4Address(value)
        except ValueError as error:
            raise UnreadableError(f"{error}; specify {self.allowed}") from error


@dataclass(frozen=True)
class ListOf:
    """A list of values: a JSON list in cdk.json, or `one,other` with -c. The value is a tuple without duplicates."""

    item: SettingForm
    allowed: str
    least: int = 0
    most: int | None = None

    @property
    def choices(self) -> tuple[str, ...]:
        return self.item.choices

    def read(self, raw: Any) -> tuple[Any, ...]:
        items = [part.strip() for part in raw.split(",") if part.strip()] if isinstance(raw, str) else raw
        if not isinstance(items, Sequence):
            raise UnreadableError(f"specify {self.allowed}")
        values = tuple(dict.fromkeys(self._item(item, self.item.read) for item in cast(Sequence[Any], items)))
        self.check(values)
        return values

    def check(self, value: Any) -> None:
        check_type(value, tuple)
        for item in value:
            self._item(item, self.item.check)
        if len(set(value)) < len(value):
            raise UnreadableError("remove repeated values")
        if len(value) < self.least or (self.most is not None and len(value) > self.most):
            raise UnreadableError(f"specify {self.allowed}")

    def _item(self, item: Any, use: Callable[[Any], Any]) -> Any:
        try:
            return use(item)
        except UnreadableError as error:
            close = nearest(str(item), self.choices)
            raise UnreadableError(f"{item!r}: " + (f"write {close}" if close else str(error))) from error


# RFC 1918. Python's is_private also includes loopback and link-local blocks, which no VPC accepts.
_PRIVATE = tuple(ipaddress.IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


@dataclass(frozen=True)
class NetworkBlock:
    """A private IPv4 network in CIDR notation, with a prefix length in a range."""

    longest_prefix: int
    shortest_prefix: int
    choices: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        return f"a private IPv4 block from /{self.shortest_prefix} to /{self.longest_prefix}, such as 10.42.0.0/16"

    def read(self, raw: Any) -> str:
        return str(self._network(str(raw)))

    def check(self, value: Any) -> None:
        check_type(value, str)
        if value != (written := str(self._network(value))):
            raise UnreadableError(f"write {written}")

    def _network(self, text: str) -> ipaddress.IPv4Network:
        try:
            network = ipaddress.IPv4Network(text)
        except ValueError as error:
            raise UnreadableError(f"{error}; specify {self.allowed}") from error
        private = any(network.subnet_of(block) for block in _PRIVATE)
        if not private or not self.shortest_prefix <= network.prefixlen <= self.longest_prefix:
            raise UnreadableError(f"specify {self.allowed}")
        return network


@dataclass(frozen=True)
class FilePath:
    """The path of an existing file. The value is the content of the file, which other rules check."""

    allowed: str
    choices: tuple[str, ...] = ()

    def read(self, raw: Any) -> Path:
        path = Path(str(raw))
        try:
            exists = path.is_file()
        except OSError as error:  # such as a name longer than the file system allows
            raise UnreadableError(f"{path}: {error.strerror}") from error
        if not exists:
            raise UnreadableError(f"{path} does not exist, or is not a file")
        return path

    def check(self, value: Any) -> None:
        pass


@dataclass(frozen=True)
class TagMap:
    """Tags as a JSON object in cdk.json, or `key=value,key=value` with -c, with the characters that AWS allows."""

    choices: tuple[str, ...] = ()
    allowed: str = (
        'an object such as {"team": "ml"}, or team=ml,stage=pilot with -c; no key that begins with aws: or trn:'
    )

    def read(self, raw: Any) -> dict[str, str]:
        if isinstance(raw, str):
            parts = [part.partition("=") for part in raw.split(",") if part]
            if any(not separator for _, separator, _ in parts):
                raise UnreadableError("write each tag as key=value")
            raw = {key.strip(): value.strip() for key, _, value in parts}
        if isinstance(raw, Mapping):
            pairs = cast(Mapping[Any, Any], raw).items()
            if all(isinstance(part, str | int) for pair in pairs for part in pair):
                raw = {str(key): str(value) for key, value in pairs}
        self.check(raw)
        return cast(dict[str, str], raw)

    def check(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise UnreadableError(f"specify {self.allowed}")
        tags = cast(Mapping[Any, Any], value)
        if not all(isinstance(part, str) for pair in tags.items() for part in pair):
            raise UnreadableError("specify each key and value as a string")
        for key, value in tags.items():
            if not re.fullmatch(r"[\w .:/=+\-@]{1,128}", key) or not re.fullmatch(r"[\w .:/=+\-@]{0,256}", value):
                raise UnreadableError(
                    f"tag {key!r}: use only letters, digits, spaces and _ . : / = + - @; "
                    "a key has 1 to 128 characters, a value up to 256"
                )
            if key.casefold().startswith(("aws:", SETTING_NAMESPACE)):
                raise UnreadableError(f"tag {key!r}: the prefixes aws: and trn: are reserved")
        # IAM treats Team and team as one key.
        if len({key.casefold() for key in tags}) < len(tags):
            raise UnreadableError("remove one of the keys that differ only by case: IAM treats them as one")
        if len(tags) > _MAX_TAGS:
            raise UnreadableError(f"specify {_MAX_TAGS} tags at most")


SETTING_NAMESPACE = "trn:"
_MAX_TAGS = 40
"""AWS allows 50 tags for a resource, including those of this package."""
