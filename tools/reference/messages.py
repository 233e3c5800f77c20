"""The messages that a pattern of a known error matches, as text: alternatives in full, and `…` for anything else."""

import re
from collections.abc import Iterator
from itertools import product

ANYTHING = "…"
_LARGEST_CLASS = 10


def messages(pattern: str) -> list[str]:
    """The texts that a pattern matches, without duplicates that differ only in case.

    Supports what the patterns of the known errors use: groups, alternatives, classes, and quantifiers of one character
    or group.
    """
    parser = _Parser(pattern)
    texts = (re.sub(f"{ANYTHING}+", ANYTHING, text).strip() for text in parser.alternatives())
    return list({text.lower(): text for text in reversed([*texts])}.values())[::-1]


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._rest = pattern

    def _take(self, form: str) -> str:
        """Take text from the start of the rest; empty if the rest does not begin with the form."""
        match = re.match(form, self._rest)
        self._rest = self._rest[match.end() :] if match else self._rest
        return match[0] if match else ""

    def alternatives(self) -> list[str]:
        found = self._sequence()
        while self._take(r"\|"):
            found += self._sequence()
        return found

    def _sequence(self) -> list[str]:
        parts = list[list[str]]()
        while self._rest and self._rest[0] not in "|)":
            parts.append(self._quantified([*self._atom()]))
        return ["".join(texts) for texts in product(*parts)]

    def _atom(self) -> Iterator[str]:
        if self._take(r"\("):
            yield from self.alternatives()
            self._take(r"\)")
        elif found := self._take(r"\[[^\]]*\]"):
            yield from _class(found[1:-1])
        elif found := self._take(r"\\."):
            yield "" if found == r"\b" else ANYTHING if found[1].isalnum() else found[1]
        else:
            found = self._take(".")
            yield ANYTHING if found == "." else found

    def _quantified(self, texts: list[str]) -> list[str]:
        if self._take(r"\?"):
            return [*texts, ""]
        return [ANYTHING] if self._take(r"[*+]|\{[\d,]*\}") else texts


def _class(content: str) -> Iterator[str]:
    """The characters of a class; `…` for a class of many."""
    characters = re.sub(r"(.)-(.)", lambda ends: "".join(map(chr, range(ord(ends[1]), ord(ends[2]) + 1))), content)
    yield from characters if len(characters) <= _LARGEST_CLASS else ANYTHING
