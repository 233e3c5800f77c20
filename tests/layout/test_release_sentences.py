"""Each sentence on support in a release of the Neuron SDK has AWS's words and a citation in release_quotes.toml."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.layout.repository import ROOT

QUOTES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("release_quotes.toml").read_text())["quote"]
PAGES = [ROOT / "README.md", *(page for page in (ROOT / "docs").rglob("*.md") if "project" not in page.parts)]
DATA_FILES = [*(ROOT / "src/trainium_core/data").rglob("*.toml")]
RELEASE = re.compile(r"\b2\.[23][0-9]\b")
CLAIM = re.compile(
    r"\b(?:since|until|up to|ended|last|later|earlier|no longer|removed|before|after|starting|frozen|from|in)\b", re.I
)
NOT_PROSE = re.compile(r"<!-- generated: ([\w-]+) -->.*?<!-- end of \1 -->|^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\[([\w-]+)\]")


def blocks(text: str) -> Iterator[str]:
    """The paragraphs, items and rows of a page, each in one line."""
    block: list[str] = []
    for line in [*NOT_PROSE.sub("", text).splitlines(), ""]:
        if not line or line.startswith(("|", "- ", "[")):
            yield " ".join(block)
            block = []
        block.append(line.strip())


def claims(text: str) -> Iterator[str]:
    """The sentences of a page on support in a release. A row of a table is one sentence."""
    for block in blocks(text):
        for sentence in [block] if block.startswith("|") else re.split(r"(?<=\.)\s+", block):
            if not block.startswith("[") and RELEASE.search(sentence) and CLAIM.search(sentence):
                yield sentence.strip()


def values(document: Any, key: str = "") -> Iterator[str]:
    """The texts of a data file, without its citations."""
    if isinstance(document, dict):
        for name, value in cast("dict[str, Any]", document).items():
            yield from values(value, name)
    elif isinstance(document, list):
        for value in cast("list[Any]", document):
            yield from values(value, key)
    elif isinstance(document, str) and key not in ("source", "url"):
        yield document


def data_claims() -> list[str]:
    texts = [text for file in DATA_FILES for text in values(tomllib.loads(file.read_text()))]
    return [text for text in texts if RELEASE.search(text) and CLAIM.search(text)]


def quoted(text: str, *, begins: bool) -> list[dict[str, Any]]:
    return [
        quote
        for quote in QUOTES
        if any(text.startswith(sentence) if begins else text == sentence for sentence in quote["sentences"])
    ]


def releases_of(quotes: list[dict[str, Any]]) -> set[str]:
    return {release for quote in quotes for release in quote["releases"]}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentence_of_a_page_has_words_of_aws_and_links_to_them(page: Path) -> None:
    text = page.read_text()
    targets = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", text, re.MULTILINE))
    for sentence in claims(text):
        quotes = quoted(sentence, begins=True)
        assert {*RELEASE.findall(sentence)} <= releases_of(quotes), sentence
        assert {quote["url"] for quote in quotes} <= {targets[name] for name in LINK.findall(sentence)}, sentence


@pytest.mark.parametrize("text", data_claims())
def test_text_of_a_data_file_has_words_of_aws(text: str) -> None:
    assert {*RELEASE.findall(text)} <= releases_of(quoted(text, begins=False))


def test_every_quote_has_words_and_is_used() -> None:
    found = [*data_claims(), *(claim for page in PAGES for claim in claims(page.read_text()))]
    for quote in QUOTES:
        assert all((quote["words"], quote["url"].startswith("https://"), quote["date"]))
        for sentence in quote["sentences"]:
            assert any(claim.startswith(sentence) for claim in found), sentence
