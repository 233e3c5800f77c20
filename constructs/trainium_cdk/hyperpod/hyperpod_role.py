"""The execution role of the instances of a HyperPod cluster."""

from collections.abc import Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.justification import justify_wildcard
from trainium_cdk.network.network_permissions import allow_interfaces
from trainium_cdk.service_role import allow, service_role
from trainium_cdk.storage.disposable_bucket import allow_objects

_LOG_GROUPS = "/aws/sagemaker/Clusters"
"""Prefix of HyperPod's log groups, and the namespace of its metrics."""

_SESSION_ACTIONS = (
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)
_MODIFY = "ec2:ModifyNetworkInterfaceAttribute"
"""The VPC CNI gives an interface the security groups of its node, and sets it to be deleted with the instance
(amazon-vpc-cni-k8s, pull request 3554). This action also needs permissions on groups and instances (Service
Authorization Reference, Amazon EC2)."""

_INSTANCE_ACTIONS = ("ec2:DetachNetworkInterface",)
_KUBERNETES_INSTANCE_ACTIONS = ("ec2:AttachNetworkInterface", _MODIFY)
_KUBERNETES_ADDRESSES = ("ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses")
_KUBERNETES = (
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeTags",
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
    "eks-auth:AssumeRoleForPodIdentity",
)
"""The ecr actions are allowed on every repository: the images of a cluster's pods are not known at synthesis."""


class HyperPodRole(Construct):
    """An execution role for HyperPod instances.

    It has the permissions of AmazonSageMakerClusterInstanceRolePolicy on fewer resources, and those for network
    interfaces in a VPC and, for EKS, for the VPC CNI, ECR and Pod Identity.

    The trust policy has no condition on the source, because it is not documented that HyperPod sets it (SageMaker AI
    Developer Guide, cross-service confused deputy prevention). `role` is the CDK object.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        lifecycle_bucket: s3.IBucket,
        lifecycle_prefix: str,
        subnet: ec2.ISubnet,
        security_groups: Sequence[ec2.ISecurityGroup],
        kubernetes: bool = False,
    ) -> None:
        """
        Args:
            security_groups: Security groups of the instances.
            kubernetes: Whether the instances are nodes of an EKS cluster. Default: False, for Slurm.
        """
        super().__init__(scope, construct_id)
        self.role = service_role(self, "Role", "sagemaker.amazonaws.com")
        self._allow_logs()
        allow_objects(lifecycle_bucket, self.role, {lifecycle_prefix: ["s3:GetObject", "s3:ListBucket"]})
        on_instances = [*_INSTANCE_ACTIONS, *(_KUBERNETES_INSTANCE_ACTIONS if kubernetes else ())]
        more = ["ec2:CreateTags", *on_instances, *(_KUBERNETES_ADDRESSES if kubernetes else ())]
        allow_interfaces(self.role, subnet=subnet, security_groups=security_groups, also_on_an_interface=more)
        # The actions also need permissions on instances (Service Authorization Reference, Amazon EC2). It is not
        # documented which account owns HyperPod's instances; the developer guide allows any.
        instances = self._ec2_arn("instance", "*", account="*")
        allow(self.role, on_instances, [instances])
        justify_wildcard(self.role, instances, "ids and account of the instances are not known at synthesis")
        if kubernetes:
            allow(
                self.role,
                [_MODIFY],
                [self._ec2_arn("security-group", group.security_group_id) for group in security_groups],
            )
        allow(self.role, [*_SESSION_ACTIONS, *(_KUBERNETES if kubernetes else ())], ["*"])

    def _ec2_arn(self, resource: str, name: str, *, account: str | None = None) -> str:
        return Stack.of(self).format_arn(service="ec2", account=account, resource=resource, resource_name=name)

    def _allow_logs(self) -> None:
        stack = Stack.of(self)
        groups = stack.format_arn(
            service="logs",
            resource="log-group",
            resource_name=f"{_LOG_GROUPS}/*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        allow(
            self.role,
            ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            [groups],
        )
        justify_wildcard(self.role, groups, "the group's name contains the cluster's id, not known at synthesis")
        allow(self.role, ["cloudwatch:PutMetricData"], ["*"], {"StringEquals": {"cloudwatch:namespace": _LOG_GROUPS}})
