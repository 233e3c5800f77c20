"""An EC2 instance, as its metadata service describes it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

ACCOUNT = "123456789012"
CREDENTIAL_HOURS = 6
Tree = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One instance.

    Attributes:
        address: Private IPv4 address of its first interface.
        user_data: The user data, decoded from base64.
    """

    instance_id: str
    instance_type: str
    address: str
    user_data: bytes
    region: str = "us-west-2"
    zone: str = "us-west-2d"
    zone_id: str = "usw2-az4"
    role: str = "trn-node"
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def host_name(self) -> str:
        return "ip-" + self.address.replace(".", "-")

    @property
    def metadata(self) -> Tree:
        """The documents below /latest without the user data. Folders are dictionaries."""
        mac = "02:" + ":".join(f"{int(part):02x}" for part in f"0.{self.address}".split("."))
        interface = {
            "device-number": "0",
            "interface-id": f"eni-{self.instance_id.removeprefix('i-')}",
            "local-ipv4s": self.address,
            "mac": mac,
            "subnet-ipv4-cidr-block": "10.0.0.0/8",
        }
        placement = {"availability-zone": self.zone, "availability-zone-id": self.zone_id, "region": self.region}
        return {
            "meta-data": {
                "ami-id": "ami-0123456789abcdef0",
                "hostname": self.host_name,
                "instance-id": self.instance_id,
                "instance-type": self.instance_type,
                "local-hostname": self.host_name,
                "local-ipv4": self.address,
                "mac": mac,
                "placement": placement,
                "network": {"interfaces": {"macs": {mac: interface}}},
                "services": {"domain": "amazonaws.com", "partition": "aws"},
                "tags": {"instance": dict(self.tags)},
                "events": {"maintenance": {"scheduled": "[]", "history": "[]"}},
                "iam": {"security-credentials": {self.role: self._credentials()}},
            },
            "dynamic": {"instance-identity": {"document": self._identity_document()}},
        }

    def _credentials(self) -> str:
        return json.dumps(
            {
                "Code": "Success",
                "Type": "AWS-HMAC",
                "AccessKeyId": "ASIALABNOTAREALKEY00",
                "SecretAccessKey": "the-lab-has-no-secrets",
                "Token": "the-lab-has-no-sessions",
                "LastUpdated": _utc(timedelta()),
                "Expiration": _utc(timedelta(hours=CREDENTIAL_HOURS)),
            }
        )

    def _identity_document(self) -> str:
        return json.dumps(
            {
                "accountId": ACCOUNT,
                "architecture": "x86_64",
                "availabilityZone": self.zone,
                "imageId": "ami-0123456789abcdef0",
                "instanceId": self.instance_id,
                "instanceType": self.instance_type,
                "privateIp": self.address,
                "region": self.region,
            }
        )


def _utc(later: timedelta) -> str:
    return (datetime.now(UTC) + later).strftime("%Y-%m-%dT%H:%M:%SZ")
