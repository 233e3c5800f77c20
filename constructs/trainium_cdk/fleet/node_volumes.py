"""The volumes of a node, and the permissions on their KMS key."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from aws_cdk import Annotations, Size, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.checks import check, check_known, form, refuse, whole_gibibytes
from trainium_cdk.storage.encryption_key import check_key
from trainium_core.facts import facts
from trainium_core.plan.rules.forms import range_problems
from trainium_core.plan.settings_by_key import SETTINGS

Mapping = ec2.CfnLaunchTemplate.BlockDeviceMappingProperty

_SERVICE_ROLE = "aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
_VOLUME_TYPES = {
    "COLD_HDD": "sc1",
    "GENERAL_PURPOSE_SSD": "gp2",
    "GENERAL_PURPOSE_SSD_GP3": "gp3",
    "MAGNETIC": "standard",
    "PROVISIONED_IOPS_SSD": "io1",
    "PROVISIONED_IOPS_SSD_IO2": "io2",
    "THROUGHPUT_OPTIMIZED_HDD": "st1",
}
"""EC2's terms for the longer names of ec2.EbsDeviceVolumeType; the others differ only in case."""

_USE = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]


@dataclass(frozen=True, kw_only=True)
class RootVolume:
    """The encrypted gp3 root volume of a node.

    Attributes:
        gib: Size in GiB.
        throughput: Throughput in MiB/s.
        initialization_rate: Rate in MiB/s at which EBS loads the image; None: without a guaranteed rate.
        device_name: Root device of the image.
    """

    gib: int
    throughput: int
    initialization_rate: int | None
    device_name: str

    @property
    def settings(self) -> dict[str, object]:
        """The values by the keys of their settings."""
        return {
            "root_volume_gib": self.gib,
            "root_volume_throughput": self.throughput,
            "root_volume_initialization": self.initialization_rate,
            "root_device_name": self.device_name,
        }

    def mapping(self, key: Key | None) -> Mapping:
        """The mapping for a launch template.

        Args:
            key: KMS key of the volume. None: the account's default key for EBS.
        """
        return Mapping(
            device_name=self.device_name,
            ebs=ec2.CfnLaunchTemplate.EbsProperty(
                volume_size=self.gib,
                volume_type="gp3",
                throughput=self.throughput,
                volume_initialization_rate=self.initialization_rate,
                encrypted=True,
                kms_key_id=None if key is None else key.key_arn,
                delete_on_termination=True,
            ),
        )


def checked_root_volume(
    construct: Construct,
    *,
    size: Size | None,
    throughput: int | None,
    initialization_rate: int | None,
    device_name: str,
) -> RootVolume:
    """The root volume for the parameters. Raises PropsError for values that EBS does not support."""
    why = "it is converted to text at synthesis"
    check_known(construct, "root_volume_throughput", throughput, why=why)
    check_known(construct, "root_volume_initialization_rate", initialization_rate, why=why)
    default: int = SETTINGS["root_volume_gib"].default
    gib = default if size is None else whole_gibibytes(construct, "root_volume_size", size)
    check(
        construct,
        range_problems("root_volume_gib", gib, "GiB", field="root_volume_size"),
        form("root_volume_throughput", throughput),
        form("root_volume_initialization", initialization_rate, field="root_volume_initialization_rate"),
    )
    return RootVolume(
        gib=gib,
        throughput=throughput or SETTINGS["root_volume_throughput"].default,
        initialization_rate=initialization_rate,
        device_name=device_name,
    )


def block_device_mappings(
    construct: Construct, devices: Sequence[ec2.BlockDevice], *, root_device_name: str, key: Key | None
) -> list[Mapping]:
    """Mappings of additional volumes for a launch template, encrypted by default.

    Raises:
        PropsError: A device name is invalid or used twice, the device is not an EBS volume, the volume type does not
            support the size or speed, or the key is invalid or given for an unencrypted volume.
    """
    taken = {root_device_name}
    mappings: list[Mapping] = []
    for device in devices:
        check(construct, form("root_device_name", device.device_name, field="block_devices"))
        if device.device_name in taken:
            fix = f"choose another name; {root_device_name} is the root volume, see root_volume_size"
            raise refuse(construct, "block_devices", device.device_name, allowed="one volume for each name", fix=fix)
        taken.add(device.device_name)
        if device.volume.ebs_device is None and device.mapping_enabled is not False:
            # Mappings of NVMe instance store volumes have no effect (botocore 1.44.5, EC2's BlockDeviceMapping,
            # VirtualName).
            allowed = "EBS volumes: NVMe instance store volumes need no mapping"
            raise refuse(construct, "block_devices", device.device_name, allowed=allowed, fix="remove it")
        mappings.append(_mapping(construct, device, key))
    return mappings


def _mapping(construct: Construct, device: ec2.BlockDevice, key: Key | None) -> Mapping:
    if device.mapping_enabled is False:
        return Mapping(device_name=device.device_name, no_device="")
    ebs: Any = device.volume.ebs_device
    kind = _volume_type(ebs.volume_type)
    _check_volume(construct, device.device_name, kind, ebs)
    own_key = ebs.kms_key if ebs.kms_key is not None else key
    return Mapping(
        device_name=device.device_name,
        ebs=ec2.CfnLaunchTemplate.EbsProperty(
            volume_size=ebs.volume_size,
            volume_type=kind,
            iops=ebs.iops,
            throughput=ebs.throughput,
            snapshot_id=ebs.snapshot_id,
            encrypted=True if ebs.encrypted is None else ebs.encrypted,
            kms_key_id=None if own_key is None or ebs.encrypted is False else own_key.key_arn,
            delete_on_termination=True if ebs.delete_on_termination is None else ebs.delete_on_termination,
        ),
    )


def _check_volume(construct: Construct, name: str, kind: str, ebs: Any) -> None:
    """Raise PropsError for values that the volume type does not support, and for a key without encryption."""
    ranges = facts()["volume_types"]
    for what, unit, value in (
        ("sizes", "GiB", ebs.volume_size),
        ("iops", "IOPS", ebs.iops),
        ("throughput", "MiB/s", ebs.throughput),
    ):
        least, most = ranges[what].get(kind, (0, 0))
        if value is None and not (what == "iops" and kind in ("io1", "io2")):
            continue
        if value is not None and (Token.is_unresolved(value) or least <= value <= most):
            continue
        allowed = f"{f'{least} to {most} {unit}' if most else f'no {what}'} on a volume of type {kind}"
        fix = f"{'choose another value' if most else f'remove {what}'}, or choose another volume_type"
        fix = "set iops" if value is None else fix
        got = f"{name}, {kind}, {'no' if value is None else value} {unit}"
        raise refuse(construct, "block_devices", got, allowed=allowed, fix=fix)
    _check_ratios(construct, name, kind, ebs)
    if ebs.kms_key is not None:
        check_key(construct, "block_devices", ebs.kms_key)
        if ebs.encrypted is False:
            allowed = "a key only on an encrypted volume"
            raise refuse(construct, "block_devices", name, allowed=allowed, fix="remove encrypted, or the key")


def _check_ratios(construct: Construct, name: str, kind: str, ebs: Any) -> None:
    """Raise PropsError if the IOPS are too high for the size, or the throughput for the IOPS."""
    ratios = facts()["volume_type_ratios"]
    size, iops, throughput = (None if Token.is_unresolved(number) else number for number in _numbers(ebs))
    included = ratios["included_iops"] if kind == "gp3" else 0
    per_gib = ratios["iops_per_gib"].get(kind)
    if per_gib and size is not None and iops is not None and iops > max(included, per_gib * size):
        allowed = f"up to {max(included, per_gib * size)} IOPS on a volume of type {kind} and {size} GiB"
        fix = f"set at least {-(-iops // per_gib)} GiB, or fewer iops"
        raise refuse(construct, "block_devices", f"{name}, {kind}, {iops} IOPS", allowed=allowed, fix=fix)
    most = ratios["throughput_per_iops"] * (included if ebs.iops is None else iops or 0)
    if throughput is not None and most and throughput > most:
        allowed = f"up to {most:g} MiB/s on a volume of type {kind} with {ebs.iops or included} IOPS"
        fix = f"set iops={math.ceil(throughput / ratios['throughput_per_iops'])}, or less throughput"
        raise refuse(construct, "block_devices", f"{name}, {kind}, {throughput} MiB/s", allowed=allowed, fix=fix)


def _numbers(ebs: Any) -> tuple[int | None, int | None, int | None]:
    return ebs.volume_size, ebs.iops, ebs.throughput


def _volume_type(volume_type: ec2.EbsDeviceVolumeType | None) -> str:
    name = (volume_type or ec2.EbsDeviceVolumeType.GP3).name
    return _VOLUME_TYPES.get(name, name.lower())


def allow_auto_scaling(construct: Construct, key: Key) -> None:
    """Allow Auto Scaling to launch instances whose volumes are encrypted with a key.

    The ARN of Auto Scaling's service-linked role is in conditions, because KMS rejects a key policy with a principal
    that does not exist yet. Source: Amazon EC2 Auto Scaling User Guide, key policy for use with encrypted volumes.
    """
    stack = Stack.of(construct)
    conditions = {"ArnLike": {"aws:PrincipalArn": f"arn:{stack.partition}:iam::{stack.account}:role/{_SERVICE_ROLE}*"}}
    anyone = cast(iam.IPrincipal, iam.AnyPrincipal())
    statements = [
        iam.PolicyStatement(principals=[anyone], actions=_USE, resources=["*"], conditions=conditions),
        iam.PolicyStatement(
            principals=[anyone],
            actions=["kms:CreateGrant"],
            resources=["*"],
            conditions={**conditions, "Bool": {"kms:GrantIsForAWSResource": "true"}},
        ),
    ]
    added = [cast(kms.IKey, key).add_to_resource_policy(statement).statement_added for statement in statements]
    if not all(added):
        Annotations.of(construct).add_warning_v2(
            "trn:volume_key",
            "the policy of an imported volume_key is not changed here: it must let AWSServiceRoleForAutoScaling use "
            "the key and create grants for AWS resources, or no instance is launched",
        )
