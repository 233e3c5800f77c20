"""Routes the embedded AWS's own paths. The request guard admits only the owner and URLs with a token."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Answer = Callable[[Any], Any]
"""A function from a werkzeug Request to its Response."""


def with_own_paths(application: WsgiApp, answers: Mapping[str, Answer]) -> WsgiApp:
    """Return `application` with handlers for these paths and everything below them."""
    from werkzeug.wrappers import Request

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = f"{environ['PATH_INFO']}/"
        own = next((handler for prefix, handler in answers.items() if path.startswith(f"{prefix}/")), None)
        return own(Request(environ))(environ, start_response) if own else application(environ, start_response)

    return answer
