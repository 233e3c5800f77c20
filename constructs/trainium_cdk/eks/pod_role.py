"""The role of pods, by EKS Pod Identity."""

import re
from typing import Any

import jsii
from aws_cdk import aws_eks as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from trainium_cdk.checks import check_known, is_pending, refuse
from trainium_cdk.eks.eks_cluster import EksCluster, check_cluster

_SERVICE = "pods.eks.amazonaws.com"
_LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAMES = {
    "namespace": (_LABEL, "1 to 63 lower-case letters, digits and hyphens, a letter or digit first and last"),
    "service_account": (
        rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*",
        "up to 253 lower-case letters, digits, hyphens and periods, a letter or digit first and last",
    ),
}
"""The names that Kubernetes accepts: RFC 1123 labels and subdomains."""


@jsii.implements(iam.IGrantable)
class PodRole(Construct):
    """A role of the pods that use one Kubernetes service account of an EKS cluster, by EKS Pod Identity.

    It has no permissions until they are granted. The cluster needs the add-on `eks-pod-identity-agent`, and you create
    the service account, for example with `kubectl create serviceaccount`. A service account has one association: to
    rename this construct, remove it in one update and add it again in another. `role` is the CDK object, and
    `node.default_child` the `eks.CfnPodIdentityAssociation`.

    Example:

        trainer = PodRole(stack, "Trainer", cluster=cluster, namespace="training", service_account="trainer")
        cache = CompileCache(stack, "Cache")
        cache.grant_read_write(trainer)
    """

    role: iam.Role

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster: EksCluster,
        service_account: str,
        namespace: str = "default",
    ) -> None:
        """
        Args:
            cluster: The EKS cluster: `ICluster` of `aws_eks` or `aws_eks_v2`, of this app or imported.
            service_account: Name of the service account.
            namespace: Namespace of the service account. Default: default.

        Raises:
            PropsError: A name is invalid or a CDK token, or the cluster is in another account or region.
        """
        super().__init__(scope, construct_id)
        check_cluster(self, cluster)
        for parameter, name in (("namespace", namespace), ("service_account", service_account)):
            pattern, allowed = _NAMES[parameter]
            check_known(self, parameter, name, why="the association cannot be changed to another one")
            if not is_pending(name) and not re.fullmatch(pattern, name):
                raise refuse(self, parameter, name, allowed=allowed, fix="choose the name that Kubernetes uses")
        principal: Any = iam.ServicePrincipal(_SERVICE).with_session_tags()
        self.role = iam.Role(self, "Role", assumed_by=principal)
        association = eks.CfnPodIdentityAssociation(
            self,
            "Resource",
            cluster_name=cluster.cluster_name,
            namespace=namespace,
            service_account=service_account,
            role_arn=self.role.role_arn,
        )
        # Pods that start as soon as the association exists must have all permissions.
        association.node.add_dependency(self.role)

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role: `bucket.grant_read(pod_role)` grants to it."""
        return self.role
