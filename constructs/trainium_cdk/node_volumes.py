"""The volumes of a node, and who may use the key that they are encrypted with."""

from collections.abc import Sequence
from typing import Any, cast

from aws_cdk import Annotations, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from trainium_cdk.arguments import check_type
from trainium_cdk.cdk_types import Key
from trainium_cdk.props_error import refuse

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
"""What EC2 calls the longer names of ec2.EbsDeviceVolumeType; the others are the same in capitals."""

_USE = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"]


def block_device_mappings(
    construct: Construct, devices: Sequence[ec2.BlockDevice], *, root_device_name: str, key: Key | None
) -> list[Mapping]:
    """Further volumes as a launch template has them: encrypted unless told otherwise, with the key where there is one.

    Raises PropsError for a device name that is taken.
    """
    taken = {root_device_name}
    mappings: list[Mapping] = []
    for device in devices:
        check_type(construct, "block_devices", device, ec2.BlockDevice, what="a list of ec2.BlockDevice")
        if device.device_name in taken:
            fix = f"choose another name; {root_device_name} is the root volume, which root_volume_size is for"
            raise refuse(construct, "block_devices", device.device_name, allowed="one volume for each name", fix=fix)
        taken.add(device.device_name)
        mappings.append(_mapping(device, key))
    return mappings


def _mapping(device: ec2.BlockDevice, key: Key | None) -> Mapping:
    if device.mapping_enabled is False:
        return Mapping(device_name=device.device_name, no_device="")
    ebs: Any = device.volume.ebs_device
    if ebs is None:
        return Mapping(device_name=device.device_name, virtual_name=device.volume.virtual_name)
    own_key = ebs.kms_key if ebs.kms_key is not None else key
    return Mapping(
        device_name=device.device_name,
        ebs=ec2.CfnLaunchTemplate.EbsProperty(
            volume_size=ebs.volume_size,
            volume_type=_volume_type(ebs.volume_type),
            iops=ebs.iops,
            throughput=ebs.throughput,
            snapshot_id=ebs.snapshot_id,
            encrypted=True if ebs.encrypted is None else ebs.encrypted,
            kms_key_id=None if own_key is None or ebs.encrypted is False else own_key.key_arn,
            delete_on_termination=True if ebs.delete_on_termination is None else ebs.delete_on_termination,
        ),
    )


def _volume_type(given: ec2.EbsDeviceVolumeType | None) -> str:
    name = (given or ec2.EbsDeviceVolumeType.GP3).name
    return _VOLUME_TYPES.get(name, name.lower())


def allow_auto_scaling(construct: Construct, key: Key) -> None:
    """Let Auto Scaling launch instances whose volumes a key encrypts.

    By the role's ARN in conditions: a principal that IAM has not made yet would keep the key from being made. Source:
    Amazon EC2 Auto Scaling User Guide, key policy for use with encrypted volumes.
    """
    stack = Stack.of(construct)
    conditions = {"ArnLike": {"aws:PrincipalArn": f"arn:{stack.partition}:iam::{stack.account}:role/{_SERVICE_ROLE}*"}}
    anybody = cast(iam.IPrincipal, iam.AnyPrincipal())
    statements = [
        iam.PolicyStatement(principals=[anybody], actions=_USE, resources=["*"], conditions=conditions),
        iam.PolicyStatement(
            principals=[anybody],
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
