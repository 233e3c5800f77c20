"""A failure inside moto is answered as AWS answers its own, by 500 and no page, so that SDKs ask again."""

from collections.abc import Callable, Iterable
from typing import Any

from werkzeug.test import Client

from trainium_local.server import with_retried_failures

PAGE = b"<!doctype html>\n<html lang=en>\n<title>500 Internal Server Error</title>\n"
Answer = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def answered(application: Answer) -> tuple[int, bytes]:
    answer = Client(with_retried_failures(application)).post("/")
    return answer.status_code, answer.get_data()


def says(status: str, kind: str, body: bytes) -> Answer:
    def answer(_environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response(status, [("Content-Type", kind)])
        return [body]

    return answer


def test_a_page_about_a_failure_becomes_a_failure_without_a_page() -> None:
    assert answered(says("500 INTERNAL SERVER ERROR", "text/html; charset=utf-8", PAGE)) == (500, b"")


def test_what_breaks_off_is_a_failure() -> None:
    def breaks_off(_environ: dict[str, Any], _start_response: Callable[..., Any]) -> Iterable[bytes]:
        raise RuntimeError("dictionary changed size during iteration")

    assert answered(breaks_off) == (500, b"")


def test_every_other_answer_stays_as_it_is() -> None:
    assert answered(says("500 Internal Server Error", "text/xml", b"<Error/>")) == (500, b"<Error/>")
    assert answered(says("200 OK", "text/html", PAGE)) == (200, PAGE)
