"""A page in a real Chromium attacks the embedded AWS without success, and plain moto with success."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.security.browser import ORIGINS, Attacker, attack
from tools.security.targets import embedded_aws, plain_moto

EVERYTHING = {"create", "read", "embed", "submit", "reset"}
"""WebSockets are left out, because plain moto has none."""
SUCCEEDS = {
    "a foreign origin": EVERYTHING,
    "a rebinding name": EVERYTHING - {"embed", "submit"},  # moto's S3 takes the host name for a bucket's.
    "a file": EVERYTHING,
}


@pytest.mark.parametrize("name", SUCCEEDS)
def test_attacks_succeed_against_plain_moto(name: str) -> None:
    with plain_moto() as target:
        target.prepare()
        assert attack(target, ORIGINS[name]) == SUCCEEDS[name]


@pytest.mark.parametrize("origin", ORIGINS.values(), ids=ORIGINS)
def test_attacks_fail_against_the_embedded_aws(origin: Callable[[Attacker, Path], str]) -> None:
    with embedded_aws() as target:
        target.prepare()
        assert attack(target, origin) == set()
