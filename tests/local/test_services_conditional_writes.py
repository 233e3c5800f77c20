"""S3 evaluates conditional writes one after the other. moto checks for the object first and writes it later."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError
from types import SimpleNamespace

import pytest

from trainium_local.services.single_calls import put_object

SECONDS = 0.5


@pytest.mark.parametrize(("headers", "meet"), [({"If-None-Match": "*"}, False), ({}, True)])
def test_conditional_writes_are_serialised_and_others_are_not(headers: Mapping[str, str], meet: bool) -> None:
    both = Barrier(2)

    def write(_response: object) -> bool:
        try:
            both.wait(SECONDS)
        except BrokenBarrierError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        met = [*pool.map(lambda _: put_object(write, SimpleNamespace(headers=headers)), range(2))]
    assert met == [meet, meet]
