"""The reference in docs/ agrees with the code."""

import re

from tools.reference.messages import ANYTHING, messages
from tools.reference.parts import PAGES, PARTS, parts_of, updated
from trainium_core.explanations.known_errors import known_error, known_errors


def test_generated_parts_agree_with_the_code() -> None:
    stale = [page.name for page in PAGES if updated(page.read_text()) != page.read_text()]
    assert stale == [], "run `make reference`"


def test_each_generated_part_is_in_one_page() -> None:
    assert sorted(name for page in PAGES for name in parts_of(page.read_text())) == sorted(PARTS)


def test_every_start_marker_has_an_end_marker() -> None:
    for page in PAGES:
        begun = re.findall(r"^<!-- generated: ([\w-]+) -->$", page.read_text(), re.MULTILINE)
        assert begun == parts_of(page.read_text()), page.name


def test_messages_show_alternatives_in_full() -> None:
    assert messages(r"NCC_(EVRF0(3[6-8]|50)|E1)\b|\[F13[49]\] ended( abnormally)?|[Aa]ddress|address") == [
        "NCC_EVRF036",
        "NCC_EVRF037",
        "NCC_EVRF038",
        "NCC_EVRF050",
        "NCC_E1",
        "[F134] ended abnormally",
        "[F134] ended",
        "[F139] ended abnormally",
        "[F139] ended",
        "Address",
    ]


def test_messages_show_any_other_text_as_an_ellipsis() -> None:
    assert messages(r"L-[0-9A-F]{8}\b|oom[-_]kill|timeout \(\d+ ms\)|TCPStore.{0,80}(reset|closed)") == [
        "L-…",
        "oom-kill",
        "oom_kill",
        "timeout (… ms)",
        "TCPStore…reset",
        "TCPStore…closed",
    ]


def test_every_message_of_a_known_error_is_known() -> None:
    shown = [(error.name, text) for error in known_errors() for text in messages(error.pattern) if ANYTHING not in text]
    unknown = [(name, text) for name, text in shown if not known_error(f"{text} x")]
    assert unknown == []
