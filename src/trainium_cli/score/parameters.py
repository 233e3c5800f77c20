"""Values for the parameters of a template, by a rule that is the same for every template."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainium_local.environment import ACCOUNT_ID

NAMES_SOMETHING = re.compile(r".*(ids?|arns?|identifiers?)$", re.IGNORECASE)
"""Names of text parameters that stand for something that must exist already."""

MADE_UP_ID = re.compile(
    r"((ami|eipalloc|eni|fs|i|igw|nat|pcx|rtb|sg|snap|subnet|tgw|vol|vpc)-[0-9a-fX]{4,17}(, *|$))+$", re.IGNORECASE
)
"""Defaults such as vpc-12345678, which are in nobody's account."""

TEXTS = (
    (r"e-?mail", "somebody@example.com"),
    (r"password", "Sc0re-Passw0rd"),
    (r"cidr|prefix", "10.9.0.0/16"),
    (r"ip(v4)?(address)?(es)?\d*$|dnsserver", "172.31.0.{host}"),
    (r"ur[il]$|endpoint", "https://example.com/score"),
    (r"domain(name)?$|directoryname|dns", "score.example.com"),
    (r"instancetype", "t3.micro"),
    (r"path$", "s3://score-bucket/score"),
    (r"version", "1.33"),
    (r"", "score"),
)
"""What a text parameter gets: of those whose expression is found in its name the first that it allows, else the first
of all that it allows. The addresses are in the first subnet of a default VPC, a host for each parameter."""

FIRST_HOST = 10


@dataclass(frozen=True, kw_only=True)
class Existing:
    """What there is in an account before anything is deployed."""

    region: str
    vpc: str
    subnets: tuple[str, ...]
    security_group: str
    key_pair: str
    image: str
    zones: tuple[str, ...]

    def of(self, name: str, kind: str) -> tuple[str, ...]:
        """What a parameter can name, by its type or, if that is text, by its own name."""
        for pattern, found in (
            (r"VPC::Id|vpc-?id$", (self.vpc,)),
            (r"Subnet::Id|subnets?\d*(ids?)?\d*$", self.subnets),
            (r"SecurityGroup::Id|securitygroups?(ids?)?$", (self.security_group,)),
            (r"SecurityGroup::GroupName", ("default",)),
            (r"KeyPair::KeyName|key(pair)?-?name$", (self.key_pair,)),
            (r"AvailabilityZone::Name|(availability|^a)-?zones?$", self.zones),
            (r"Image::Id|(image|ami)id$", (self.image,)),
            (r"account-?ids?\w*$|owner-?ids?$", (ACCOUNT_ID,)),
            (r"region$", (self.region,)),
        ):
            if re.search(pattern, kind if "::" in kind else name, re.IGNORECASE):
                return found
        return ()


NEW_ACCOUNT = Existing(
    region="us-west-2",
    vpc="vpc-0123456789abcdef0",
    subnets=("subnet-0123456789abcdef0", "subnet-0123456789abcdef1", "subnet-0123456789abcdef2"),
    security_group="sg-0123456789abcdef0",
    key_pair="score",
    image="ami-0123456789abcdef0",
    zones=("us-west-2a", "us-west-2b", "us-west-2c"),
)
"""The kinds of things in a new account, with ids that stand for those of a real one."""


def values(parameters: Mapping[str, Any], existing: Existing) -> dict[str, str]:
    """A value for every parameter without a default, and for one whose default names nothing in a new account.

    Several parameters for one kind of thing get different ones, as far as there are. Raises LookupError for a
    parameter that no rule fits.
    """
    given: dict[str, str] = {}
    used: Counter[tuple[str, ...]] = Counter()
    for name, parameter in parameters.items():
        default, kind = str(parameter.get("Default", "")), str(parameter.get("Type"))
        known = existing.of(name, kind)
        absent = known and default and "SSM" not in kind and not {*default.split(",")} <= {*known}
        usable = not MADE_UP_ID.match(default) and (default or "::" not in kind) and not absent
        if "Default" in parameter and usable:
            continue
        candidates = known[used[known] % len(known) :] + known if known else ()
        given[name] = _value(name, parameter, candidates, host=FIRST_HOST + len(given))
        used[known] += 1
    return given


def _value(name: str, parameter: Mapping[str, Any], known: tuple[str, ...], *, host: int) -> str:
    kind = str(parameter.get("Type"))
    if parameter.get("AllowedValues"):
        return str(parameter["AllowedValues"][0])
    if kind == "Number":
        return str(parameter.get("MinValue", parameter.get("MaxValue", 1)))
    if known:
        several = kind.startswith(("List<", "CommaDelimitedList")) or name.lower().endswith("s")
        return ",".join(dict.fromkeys(known)) if several else known[0]
    if "::" in kind or NAMES_SOMETHING.match(name) or "Default" in parameter:
        raise LookupError(f"{name}: names something that is not in a new account")
    matching = [text for pattern, text in TEXTS if re.search(pattern, name, re.IGNORECASE)]
    for text in (one.format(host=host) for one in [*matching, *(text for _, text in TEXTS), ""]):
        if _allows(parameter, text):
            return text
    raise LookupError(f"{name}: no value known that {parameter.get('AllowedPattern')} allows")


def _allows(parameter: Mapping[str, Any], text: str) -> bool:
    least, most = int(parameter.get("MinLength", 0)), int(parameter.get("MaxLength", len(text)))
    try:
        return least <= len(text) <= most and bool(re.fullmatch(parameter.get("AllowedPattern", ".*"), text))
    except re.error:
        return False
