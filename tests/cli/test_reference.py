"""The reference in docs/ is what the code says."""

import re

from tools.reference.regions import PAGES, REGIONS, regions_of, renewed


def test_every_generated_part_of_a_page_follows_the_code() -> None:
    stale = [page.name for page in PAGES if renewed(page.read_text()) != page.read_text()]
    assert stale == [], "run `make reference`"


def test_every_generated_part_stands_in_one_page() -> None:
    assert sorted(name for page in PAGES for name in regions_of(page.read_text())) == sorted(REGIONS)


def test_every_marker_has_its_end() -> None:
    for page in PAGES:
        begun = re.findall(r"^<!-- generated: ([\w-]+) -->$", page.read_text(), re.MULTILINE)
        assert begun == regions_of(page.read_text()), page.name
