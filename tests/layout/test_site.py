"""Every page of docs/ is in the navigation of the site, and every link between documents has a target.

`make docs` checks the same in the built site; these tests need only the texts.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.layout.repository import ROOT, files

SITE = Path("docs")
DOCUMENTS = [
    file for file in files() if file.suffix == ".md" and file.parts[0] in ("docs", "README.md", "CONTRIBUTING.md")
]
PAGES = [file for file in DOCUMENTS if file.is_relative_to(SITE)]
LINK = re.compile(r"(?:\]\(|^\[[\w-]+\]: |(?:src|srcset|data)=\")([^)\s\"]+)", re.MULTILINE)


def prose(text: str) -> str:
    """A text without its code blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors of the headings of a page, as Python-Markdown makes them."""
    headings = re.findall(r"^#+ (.+?)(?: \{.*\})?$", prose(text), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain} | set(re.findall(r"\{ ?#([\w-]+) ?\}", text))


def links(document: Path) -> Iterator[tuple[str, Path, str]]:
    """Links to other places of the repository: as written, the file, and its anchor."""
    for link in LINK.findall(prose((ROOT / document).read_text())):
        if "://" not in link and not link.startswith("mailto:"):
            name, _, anchor = link.partition("#")
            file = (ROOT / document.parent / name).resolve().relative_to(ROOT) if name else document
            yield link, file, anchor


def in_navigation(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        for target in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(target, list):
                yield from in_navigation(target)
            else:
                yield target


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(in_navigation(navigation)) == sorted(str(page.relative_to(SITE)) for page in PAGES)


def test_every_link_has_an_existing_file_and_heading() -> None:
    broken = [
        f"{document}: {link}"
        for document in DOCUMENTS
        for link, file, anchor in links(document)
        if not (ROOT / file).exists() or (anchor and anchor not in anchors((ROOT / file).read_text()))
    ]
    assert broken == []


def test_relative_links_of_pages_stay_within_the_site() -> None:
    outside = [f"{page}: {link}" for page in PAGES for link, file, _ in links(page) if not file.is_relative_to(SITE)]
    assert outside == []
