"""Checks at synthesis whether a target group can contain the nodes of a fleet."""

from aws_cdk import Annotations, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from constructs import Construct

from trainium_cdk.checks import check_same_region, refuse
from trainium_cdk.network.same_vpc import refuse_another_vpc

_PARAMETER = "target_group"


def check_target_group(construct: Construct, group: elbv2.ITargetGroup, vpc: ec2.IVpc) -> None:
    """Raise PropsError if the target type is not instance, or if the target group is in another VPC or region.

    Of an imported group only the ARN is known: its region is checked, and a warning is added.
    """
    check_same_region(construct, _PARAMETER, group, what="a target group")
    resource = group.node.default_child
    if not isinstance(resource, elbv2.CfnTargetGroup):
        _check_imported(construct, group)
        return
    stack = Stack.of(resource)
    target_type = stack.resolve(resource.target_type)
    if isinstance(target_type, str) and target_type != "instance":
        raise refuse(
            construct,
            _PARAMETER,
            f"{group.node.path}, of the target type {target_type}",
            allowed="a target group of the target type instance, which Auto Scaling requires",
            fix="create it with target_type=elbv2.TargetType.INSTANCE",
        )
    if resource.vpc_id is not None:
        refuse_another_vpc(construct, _PARAMETER, group, resource.vpc_id, vpc)


def _check_imported(construct: Construct, group: elbv2.ITargetGroup) -> None:
    arn, region = group.target_group_arn, Stack.of(construct).region
    if not Token.is_unresolved(arn) and not Token.is_unresolved(region) and f":{region}:" not in arn:
        allowed = f"a target group of {region}, the region of the stack"
        raise refuse(construct, _PARAMETER, arn, allowed=allowed, fix="pass a target group of that region")
    Annotations.of(construct).add_warning_v2(
        f"trn:{_PARAMETER}",
        f"the imported target group {group.node.path} cannot be checked: it must have the target type "
        f"instance and be in the nodes' VPC, or Auto Scaling cannot register the nodes with it",
    )
