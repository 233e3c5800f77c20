"""The reference in docs/ agrees with the code."""

import re

from tools.reference.parts import PAGES, PARTS, parts_of, updated
from tools.reference.record import SCHEMA_FILE, record_schema


def test_generated_parts_agree_with_the_code() -> None:
    stale = [page.name for page in PAGES if updated(page.read_text()) != page.read_text()]
    assert stale == [], "run `make reference`"


def test_schema_of_records_agrees_with_the_code() -> None:
    assert SCHEMA_FILE.read_text() == record_schema(), "run `make reference`"


def test_each_generated_part_is_in_one_page() -> None:
    assert sorted(name for page in PAGES for name in parts_of(page.read_text())) == sorted(PARTS)


def test_every_start_marker_has_an_end_marker() -> None:
    for page in PAGES:
        begun = re.findall(r"^<!-- generated: ([\w-]+) -->$", page.read_text(), re.MULTILINE)
        assert begun == parts_of(page.read_text()), page.name
