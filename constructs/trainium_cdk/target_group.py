"""Whether a load balancer's target group takes the nodes of a fleet, as far as an app knows."""

from aws_cdk import Annotations, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from constructs import Construct

from trainium_cdk.arguments import check_object, check_same_region
from trainium_cdk.props_error import refuse
from trainium_cdk.same_vpc import refuse_another_vpc

_PARAMETER = "target_group"
_KIND = {"application": "an elbv2.IApplicationTargetGroup", "network": "an elbv2.INetworkTargetGroup"}


def check_target_group(construct: Construct, group: elbv2.ITargetGroup, vpc: ec2.IVpc, *, of: str) -> None:
    """Raise PropsError for a target group of other targets than instances, or of another VPC or region.

    of: `application` or `network`, the kind of load balancer. Of an imported group nobody knows, so it is warned of.
    """
    check_object(construct, _PARAMETER, group, has="target_group_arn", what=_KIND[of])
    if hasattr(group, "register_connectable") is not (of == "application"):
        fix = f"give {_KIND[of]}, or add the fleet to this one: target_group.add_target(fleet)"
        raise refuse(construct, _PARAMETER, group, allowed=_KIND[of], fix=fix)
    check_same_region(construct, _PARAMETER, group, what="a target group")
    resource = group.node.default_child
    if not isinstance(resource, elbv2.CfnTargetGroup):
        _warn_of_imported(construct, group)
        return
    stack = Stack.of(resource)
    target_type = stack.resolve(resource.target_type)
    if isinstance(target_type, str) and target_type != "instance":
        raise refuse(
            construct,
            _PARAMETER,
            f"{group.node.path}, of the target type {target_type}",
            allowed="a target group of the target type instance: the nodes are those of an Auto Scaling group",
            fix="make it with target_type=elbv2.TargetType.INSTANCE",
        )
    if resource.vpc_id is not None:
        refuse_another_vpc(construct, _PARAMETER, group, resource.vpc_id, vpc)


def _warn_of_imported(construct: Construct, group: elbv2.ITargetGroup) -> None:
    arn, region = group.target_group_arn, Stack.of(construct).region
    if not Token.is_unresolved(arn) and not Token.is_unresolved(region) and f":{region}:" not in arn:
        allowed = f"a target group of {region}, the region of the stack"
        raise refuse(construct, _PARAMETER, arn, allowed=allowed, fix="give a target group of that region")
    Annotations.of(construct).add_warning_v2(
        f"trn:{_PARAMETER}",
        f"nothing but its ARN is known of the imported target group {group.node.path}: it must be of the target type "
        f"instance and in the nodes' VPC, or Auto Scaling cannot register the nodes with it",
    )
