"""Chooses the launch template version of the nodes: the current one, unless the nodes must be replaced.

A pure function of the newest version, the stored choices, and whether the stack is being rolled back. The choice and
the one before it are stored in the physical ID of the resource, so a rollback returns to the previous version.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RESOURCE_TYPE = "Custom::TrnLaunchTemplateVersion"

REPLACING = ("LaunchTemplateId", "Settings", "Uses")
"""Properties whose change replaces the nodes. Another image in the plan replaces them too."""

_DIGITS = 16  # of a digest, enough to be unique for one cluster
_FIELD, _BEFORE = "|", " < "


@dataclass(frozen=True, kw_only=True)
class VersionChoice:
    """A version and the properties that it was chosen for.

    Attributes:
        kind: Digest of the properties in REPLACING.
        named: Digest of the plan's reference to the image.
        image: ID of the image.
        script: ARN of the node script.
    """

    version: str
    kind: str
    named: str
    image: str
    script: str

    @classmethod
    def latest(cls, offered: Mapping[str, Any]) -> "VersionChoice":
        """The newest version, from the properties of the resource."""
        return cls(
            version=offered["LatestVersion"],
            kind=_digest({name: offered[name] for name in REPLACING}),
            named=_digest(offered["ImageSetting"]),
            image=offered["Image"],
            script=offered["NodeScript"],
        )

    def is_compatible_with(self, latest: "VersionChoice") -> bool:
        """Whether nodes of this version can stay. A new image behind an SSM parameter does not replace nodes."""
        return self.kind == latest.kind and (self.image == latest.image or self.named == latest.named)

    def __str__(self) -> str:
        return _FIELD.join((self.version, self.kind, self.named, self.image, self.script))

    @classmethod
    def from_text(cls, text: str) -> "VersionChoice | None":
        """Parse the result of `str`. None for a text of another form."""
        parts = text.split(_FIELD)
        if len(parts) != 5:
            return None
        return cls(version=parts[0], kind=parts[1], named=parts[2], image=parts[3], script=parts[4])

    @classmethod
    def remembered(cls, physical_id: str | None) -> "VersionChoice | None":
        """The last choice in the physical ID of the resource; None if there is none."""
        return cls.from_text((physical_id or "").partition(_BEFORE)[0])


def choose(
    offered: Mapping[str, Any], physical_id: str | None, *, rolling_back: bool = False
) -> tuple[VersionChoice, str]:
    """The version for the nodes, and the physical ID that stores it.

    Args:
        offered: The properties of the resource.
        physical_id: Physical ID with the previous choices. None at creation.
        rolling_back: Whether the stack is being rolled back. Only then can an earlier version be chosen again.
    """
    latest = VersionChoice.latest(offered)
    current = VersionChoice.remembered(physical_id)
    earlier = VersionChoice.from_text((physical_id or "").partition(_BEFORE)[2])
    if current and current.is_compatible_with(latest):
        choice = _renamed(current, latest)
        return choice, f"{choice}{_BEFORE}{earlier}" if earlier else str(choice)
    if rolling_back and earlier and earlier.is_compatible_with(latest):
        # The version that is rolled back is forgotten, because it may be defective.
        return earlier, str(earlier)
    return latest, f"{latest}{_BEFORE}{current}" if current else str(latest)


def _renamed(choice: VersionChoice, latest: VersionChoice) -> VersionChoice:
    return VersionChoice(
        version=choice.version, kind=choice.kind, named=latest.named, image=choice.image, script=choice.script
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]
