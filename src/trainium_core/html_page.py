"""Reports as one self-contained HTML page: no script, font or other file."""

from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from trainium_core.facts import DATA

_DIRECTIONS = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
"""Replacements of the characters that embed, override or isolate a direction."""


def html_page(template: str, **values: Any) -> str:
    """Render a template in data/ that extends page.html.j2. Values are escaped, except those that the template
    marks as safe.

    Characters that UTF-8 cannot encode become question marks, and those that change the direction of the text that
    follows become U+FFFD.
    """
    text = _environment().get_template(template).render(**values).translate(_DIRECTIONS)
    return text.encode("utf-8", "replace").decode()


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(DATA)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
