"""The lab, switched on once for all tests."""

import time
from collections.abc import Iterator

import pytest

from lab.laboratory import Laboratory, laboratory
from lab.paths import RUN

_started = time.monotonic()


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Iterator[Laboratory]:
    """At its end, the sentence with which `make lab` closes is in .lab/run/shown."""
    with laboratory() as on:
        yield on
        shown = f"{on.delivered} nodes booted for real, {request.session.testscollected} tests of them"
        (RUN / "shown").write_text(shown)
