"""Which version of a launch template the nodes are launched from: the one that they have, until it has to be another.

A pure function of the newest version and of what was chosen before. CloudFormation keeps the choice, as the
physical id of the resource, so that a rollback comes to the version that ran before.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RESOURCE_TYPE = "Custom::TrnLaunchTemplateVersion"

REPLACING = ("LaunchTemplateId", "Settings", "Uses")
"""Properties whose change replaces the nodes."""

_DIGITS = 16  # of a digest: no two deployments of one cluster will ever share them
_FIELD, _BEFORE = "|", " < "


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A version and what it was chosen for. image: its id. script: ARN of the node script that the user data fetch.

    kind: digest of the properties in REPLACING. named: digest of how the plan names the image.
    """

    version: str
    kind: str
    named: str
    image: str
    script: str

    @classmethod
    def latest(cls, offered: Mapping[str, Any]) -> "Choice":
        """The newest version by the properties of the resource."""
        return cls(
            version=offered["LatestVersion"],
            kind=_digest({name: offered[name] for name in REPLACING}),
            named=_digest(offered["ImageSetting"]),
            image=offered["Image"],
            script=offered["NodeScript"],
        )

    def is_compatible_with(self, latest: "Choice") -> bool:
        """Whether nodes of this version may stay. An image parameter that moved on by itself replaces none."""
        return self.kind == latest.kind and (self.image == latest.image or self.named == latest.named)

    def __str__(self) -> str:
        return _FIELD.join((self.version, self.kind, self.named, self.image, self.script))

    @classmethod
    def from_text(cls, text: str) -> "Choice | None":
        """Read what `str` of a choice gives; None for anything else."""
        parts = text.split(_FIELD)
        if len(parts) != 5:
            return None
        return cls(version=parts[0], kind=parts[1], named=parts[2], image=parts[3], script=parts[4])

    @classmethod
    def remembered(cls, physical_id: str | None) -> "Choice | None":
        """The last choice that the physical id of the resource remembers."""
        return cls.from_text((physical_id or "").partition(_BEFORE)[0])


def choose(offered: Mapping[str, Any], physical_id: str | None, *, rolling_back: bool = False) -> tuple[Choice, str]:
    """The version for the nodes, and the physical id that remembers it.

    offered: the properties of the resource. physical_id: what an earlier choice gave, None before the first.
    rolling_back: whether the stack comes back to what it was; only then a version from before the last serves again.
    """
    latest = Choice.latest(offered)
    current = Choice.remembered(physical_id)
    earlier = Choice.from_text((physical_id or "").partition(_BEFORE)[2])
    if current and current.is_compatible_with(latest):
        kept = _renamed(current, latest)
        return kept, f"{kept}{_BEFORE}{earlier}" if earlier else str(kept)
    if rolling_back and earlier and earlier.is_compatible_with(latest):
        # What the rollback comes from may be wrong, and is forgotten.
        return earlier, str(earlier)
    return latest, f"{latest}{_BEFORE}{current}" if current else str(latest)


def _renamed(kept: Choice, latest: Choice) -> Choice:
    return Choice(version=kept.version, kind=kept.kind, named=latest.named, image=kept.image, script=kept.script)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]
