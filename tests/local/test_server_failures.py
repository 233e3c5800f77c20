"""An exception inside moto becomes an empty response with status 500 instead of an HTML page, so that SDKs retry."""

from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.test import Client

from trainium_local.server import with_retried_failures

Answer = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def answered(application: Answer, path: str = "/") -> tuple[int, bytes]:
    answer = Client(with_retried_failures(application)).post(path)
    return answer.status_code, answer.get_data()


def test_exception_inside_service_is_error_without_html() -> None:
    def fail() -> None:
        raise RuntimeError("dictionary changed size during iteration")

    application: Any = create_backend_app("sts")
    application.add_url_rule("/broken", view_func=fail, methods=["POST"])
    assert answered(application, "/broken") == (500, b"")


def test_exception_before_service_is_known_is_error_without_html() -> None:
    def fail(_environ: dict[str, Any], _start_response: Callable[..., Any]) -> Iterable[bytes]:
        raise KeyError("HTTP_X_AMZ_TARGET")

    assert answered(fail) == (500, b"")


def test_other_responses_are_unchanged() -> None:
    def answer(_environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("500 Internal Server Error", [("Content-Type", "text/xml")])
        return [b"<Error/>"]

    assert answered(answer) == (500, b"<Error/>")
