"""A real Chromium, shown a page that attacks: nothing of it reaches the embedded AWS, all of it reaches plain moto."""

from collections.abc import Callable
from pathlib import Path

import pytest

from security.browser import ORIGINS, Attacker, attack
from security.targets import embedded_aws, plain_moto

EVERYTHING = {"create", "read", "embed", "submit", "reset"}
"""WebSockets are not among them: plain moto has none either."""


@pytest.mark.parametrize("origin", ORIGINS.values(), ids=ORIGINS)
def test_every_attack_succeeds_against_plain_moto(origin: Callable[[Attacker, Path], str]) -> None:
    with plain_moto() as target:
        target.prepare()
        assert attack(target, origin) == EVERYTHING


@pytest.mark.parametrize("origin", ORIGINS.values(), ids=ORIGINS)
def test_no_attack_succeeds_against_the_embedded_aws(origin: Callable[[Attacker, Path], str]) -> None:
    with embedded_aws() as target:
        target.prepare()
        assert attack(target, origin) == set()
