"""Every page of docs/ is in the navigation of the site, and every link between documents leads somewhere.

`make docs` shows the same of the built site; here nothing but the texts is needed.
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
    """A text without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors of the headings of a page, as Python-Markdown makes them."""
    headings = re.findall(r"^#+ (.+?)(?: \{.*\})?$", prose(text), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain} | set(re.findall(r"\{ ?#([\w-]+) ?\}", text))


def links(document: Path) -> Iterator[tuple[str, Path, str]]:
    """Each link to another place of the repository: as written, the file and the anchor that it names."""
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


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    broken = [
        f"{document}: {link}"
        for document in DOCUMENTS
        for link, file, anchor in links(document)
        if not (ROOT / file).exists() or (anchor and anchor not in anchors((ROOT / file).read_text()))
    ]
    assert broken == []


def test_a_page_links_nothing_that_the_site_does_not_have() -> None:
    outside = [f"{page}: {link}" for page in PAGES for link, file, _ in links(page) if not file.is_relative_to(SITE)]
    assert outside == []
