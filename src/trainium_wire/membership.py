"""The membership: the nodes of the cluster, and notices to all of them. Every node reads it.

The membership is one JSON object at MEMBERSHIP_KEY. The controller writes its members once every node is verified.
The controller and `trn` write its notices at any time. From the membership a node learns its rank, the address of
the first node, and the nodes that it must reach.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from trainium_wire.formats import json_value, time_text

_VERSION_LENGTH = 16  # hexadecimal digits, enough to be unique for one cluster


@dataclass(frozen=True)
class Member:
    """One node. `address` is the private IPv4 address of its first interface, from EC2."""

    instance_id: str
    address: str


@dataclass(frozen=True)
class Notice:
    """An event at which all nodes are terminated. `at` is its time in ISO 8601 and UTC."""

    kind: str
    at: str
    reason: str

    @classmethod
    def of(cls, kind: str, at: datetime, reason: str) -> Notice:
        """A notice for a time with a time zone, which is stored in whole seconds."""
        return cls(kind=kind, at=time_text(at), reason=reason)


def without(notices: tuple[Notice, ...], kind: str) -> tuple[Notice, ...]:
    """All notices except those of a kind."""
    return tuple(notice for notice in notices if notice.kind != kind)


@dataclass(frozen=True)
class Membership:
    """The members, sorted by instance ID, and the notices. Rank 0 is the first member.

    There are no members until every node has been verified once.
    """

    members: tuple[Member, ...] = ()
    notices: tuple[Notice, ...] = ()

    @classmethod
    def of(cls, addresses: Mapping[str, str], notices: tuple[Notice, ...] = ()) -> Membership:
        """The membership of instances, from their addresses by instance ID."""
        members = tuple(Member(instance_id=i, address=address) for i, address in sorted(addresses.items()))
        return cls(members=members, notices=notices)

    @property
    def version(self) -> str:
        """A digest of the members; empty without members."""
        if not self.members:
            return ""
        named = "\n".join(f"{member.instance_id} {member.address}" for member in self.members)
        return sha256(named.encode()).hexdigest()[:_VERSION_LENGTH]

    @property
    def instance_ids(self) -> frozenset[str]:
        return frozenset(member.instance_id for member in self.members)

    def to_json(self) -> str:
        shown = {
            "version": self.version,
            "nodes": [asdict(member) for member in self.members],
            "notices": [asdict(notice) for notice in self.notices],
        }
        return json.dumps(shown, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Membership:
        """Parse a membership.

        Raises:
            ValueError: The text is not a membership. The message has the reason.
        """
        try:
            raw: Any = json_value(text)
            return cls(
                members=tuple(
                    Member(instance_id=str(n["instance_id"]), address=str(n["address"])) for n in raw["nodes"]
                ),
                notices=tuple(
                    Notice(kind=str(n["kind"]), at=str(n["at"]), reason=str(n["reason"]))
                    for n in raw.get("notices", [])
                ),
            )
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise ValueError(f"not a membership: {error!r}") from error
