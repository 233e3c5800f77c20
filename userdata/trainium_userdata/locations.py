"""The locations of a cluster's resources, for its nodes."""

import re
from dataclasses import dataclass, fields

# A shell reads the values unquoted, after CDK tokens have been resolved.
_SAFE = re.compile(r"([A-Za-z0-9./:_-]|\$\{Token\[[^\]]+\]\})+")


@dataclass(frozen=True, kw_only=True)
class NodeLocations:
    """Region, S3 URLs, role and file systems of a cluster. Values may contain CDK tokens.

    Attributes:
        region: AWS region of the node and its buckets.
        report_url: S3 URL of the folder of node records.
        node_script_url: S3 URL of the output of `node_script`.
        cache_url: S3 URL of the compile cache; None on EKS, where each job names its own.
        cache_access: `read` if nodes may only read the compile cache; None if they may also write it.
        role_id: ID of the nodes' role, which is in the names of their objects; None for a role of another stack.
        lustre_dns: DNS name of the FSx for Lustre file system; None without one.
        lustre_mount_name: Mount name of the FSx for Lustre file system; None without one.
        efs_dns: DNS name of the EFS file system; None without one.

    Raises:
        ValueError: A value is empty, or contains characters other than letters, digits and `./:_-`.
    """

    region: str
    report_url: str
    node_script_url: str
    cache_url: str | None = None
    cache_access: str | None = None
    role_id: str | None = None
    lustre_dns: str | None = None
    lustre_mount_name: str | None = None
    efs_dns: str | None = None

    def __post_init__(self) -> None:
        for name, value in self._values():
            if not _SAFE.fullmatch(value):
                raise ValueError(f"{name}: got {value!r}; allowed are letters, digits and . / : _ -")

    @property
    def lines(self) -> list[str]:
        """The lines of the node's /etc/trn/places.env."""
        return [f"TRN_{name.upper()}={value}" for name, value in self._values()]

    def _values(self) -> list[tuple[str, str]]:
        return [(each.name, value) for each in fields(self) if (value := getattr(self, each.name)) is not None]
