"""Reports as one self-contained HTML page: no script, font or other file."""

from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from trainium_core.facts import DATA


def html_page(template: str, **values: Any) -> str:
    """Render a template in data/ that extends page.html.j2. Values are escaped, except those that the template
    marks as safe.

    Characters that UTF-8 cannot encode become question marks.
    """
    return _environment().get_template(template).render(**values).encode("utf-8", "replace").decode()


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(DATA)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
