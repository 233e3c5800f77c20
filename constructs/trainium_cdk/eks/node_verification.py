"""The verification of the nodes of an EKS cluster before pods run on them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from trainium_cdk.cdk_types import Topic
from trainium_cdk.checks import check, check_known, form
from trainium_cdk.fleet.group_arn import group_arn
from trainium_cdk.fleet.node_checks import NodeChecks
from trainium_cdk.fleet.node_records import allow_reading_records_in, role_unique_id
from trainium_cdk.fleet.node_script import ScriptAsset
from trainium_cdk.handler_function import HandlerFunction
from trainium_cdk.justification import justify_wildcard
from trainium_cdk.physical_names import node_records_bucket_name
from trainium_cdk.pilot.pilot import add_alarm, allow_alarms
from trainium_cdk.service_role import allow
from trainium_cdk.storage.disposable_bucket import DisposableBucket, named_bucket_arn
from trainium_core.plan.node_settings import NodeSettings
from trainium_runtime.naming import EKS_CLUSTER_TAG, EKS_GROUP_TAG
from trainium_userdata.eks import verification_objects
from trainium_userdata.locations import NodeLocations
from trainium_userdata.script import eks_node_script, eks_user_data
from trainium_wire.keys import LOGS_PREFIX, RECORDS_PREFIX

_LOGS_KEPT = Duration.days(30)
_GUARD_MINUTES = 15
_EKS_GROUPS = "eks-*"
"""Names of the Auto Scaling groups of node groups. Source, also of their tags: the AWS managed policy
AWSServiceRoleForAmazonEKSNodegroup."""


class NodeVerification(Construct):
    """The verification of the nodes of NeuronNodeGroups, and the bucket of their records.

    Before kubelet starts, a node checks its devices and EFA interfaces. Then a pod of a DaemonSet, which you create
    with `kubectl apply`, tests the computations of every NeuronCore in the image of your jobs. Until it has passed, the
    node has the taint `trn/unverified=true:NoSchedule`. One verification serves all groups of an EKS cluster.

    Example:

        existing = eks.Cluster.from_cluster_attributes(
            stack, "Existing", cluster_name="prod", vpc=vpc, cluster_security_group_id="sg-0123456789abcdef0"
        )
        verification = NodeVerification(
            stack, "Verification", image="111122223333.dkr.ecr.us-west-2.amazonaws.com/training:1"
        )
        NeuronNodeGroup(
            stack,
            "Group",
            cluster=existing,
            instance_type=ec2.InstanceType("trn1.32xlarge"),
            node_verification=verification,
        )
        for_kubectl = verification.manifest

    `bucket` has a record for each node, below `nodes/`, and is deleted with the stack. `checks` are those of all nodes.
    Every 15 minutes, a function ends the nodes whose verification failed 30 minutes ago, and those that have no record
    two hours after their launch, and lowers the desired size of their groups. `guard_role`, its role, may end any node
    of the groups with this verification.
    """

    bucket: s3.Bucket
    checks: NodeChecks
    guard_role: iam.IRole

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        image: str,
        namespace: str = "kube-system",
        checks: NodeChecks | None = None,
        notices: Topic | None = None,
    ) -> None:
        """
        Args:
            image: The image of the jobs with tag or digest, which the nodes' role can pull. It needs Python 3.9 or
                later with a framework for Neuron, neuron-ls, nccom-test and fi_info.
            namespace: Namespace of the DaemonSet. Default: kube-system.
            checks: Which failed checks fail a node. Default: NodeChecks.enforce().
            notices: Topic for an alarm when the function that ends nodes fails. The policies of an imported topic and
                of its key must allow CloudWatch to publish. Default: no alarm.

        Raises:
            PropsError: The image has no tag or digest, or the namespace is invalid.
        """
        super().__init__(scope, construct_id)
        check(self, form("eks_image", image, field="image"), form("eks_namespace", namespace, field="namespace"))
        self._image, self._namespace = image, namespace
        self.checks = checks or NodeChecks.enforce()
        rules = [s3.LifecycleRule(id="logs", prefix=f"{LOGS_PREFIX}/", expiration=_LOGS_KEPT)]
        self.bucket = DisposableBucket(self, "Records", lifecycle_rules=rules).bucket
        # Policies of `trn permissions`, which do not know this stack, apply to this name.
        cast(s3.CfnBucket, self.bucket.node.default_child).bucket_name = node_records_bucket_name(self)
        guard = HandlerFunction(
            self,
            "Guard",
            handler="eks_node_guard",
            timeout_minutes=5,
            environment={"RECORDS_BUCKET": self.bucket.bucket_name},
        )
        allow_reading_records_in(guard, self.bucket)
        guard.allow_reading(["autoscaling:DescribeAutoScalingInstances", "ec2:DescribeInstances"])
        guard.call_every("Schedule", minutes=_GUARD_MINUTES)
        self.guard_role = guard.role
        if notices is not None:
            topic = cast(sns.ITopic, notices)
            allow_alarms(self, topic)
            what = "The guard of the EKS nodes is failing: unverified nodes might run, and are billed."
            add_alarm(self, "Fails", function_name=guard.name, what=what, topic_arn=topic.topic_arn)

    @property
    def objects(self) -> Sequence[Mapping[str, Any]]:
        """The Kubernetes objects: a DaemonSet, its service account, and the permission to get and patch nodes.

        They can contain CDK tokens in `cluster.add_manifest("Verification", *verification.objects)`.
        """
        return verification_objects(image=self._image, namespace=self._namespace)

    @property
    def manifest(self) -> str:
        """The objects as JSON, for `kubectl apply --filename`.

        Raises:
            PropsError: The image or the namespace is a CDK token.
        """
        for parameter, value in (("image", self._image), ("namespace", self._namespace)):
            check_known(self, parameter, value, why="the manifest, which CloudFormation does not read, contains it")
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": self.objects}, indent=2) + "\n"


def verified_user_data(
    construct: Construct, verification: NodeVerification, *, node: NodeSettings, role: iam.IRole
) -> str:
    """The user data of nodes that are verified. The role gets permission to read their program and to write records.

    A node cannot write the record of another one: the names of its objects contain `aws:userid`.
    """
    script = ScriptAsset(construct, "NodeScript", text=eks_node_script(node))
    bucket = verification.bucket
    names = [f"{RECORDS_PREFIX}/${{aws:userid}}.json", f"{LOGS_PREFIX}/${{aws:userid}}.log"]
    allow(role, ["s3:PutObject"], [named_bucket_arn(bucket, name) for name in names])
    allow(role, ["s3:GetObject"], [script.arn])
    locations = NodeLocations(
        region=Stack.of(construct).region,
        report_url=f"s3://{bucket.bucket_name}/{RECORDS_PREFIX}",
        node_script_url=script.s3_object_url,
        role_id=role_unique_id(role),
    )
    return eks_user_data(locations, script=script.text)


def let_guard_end_nodes(
    construct: Construct, verification: NodeVerification, *, cluster_name: str, nodegroup_name: str
) -> None:
    """Allow the guard to end the nodes of a node group, by the tags of EKS on its Auto Scaling group.

    The policy is in the group's stack. The verification's own stack may be deployed first, and then cannot refer to it.
    """
    groups = group_arn(construct, _EKS_GROUPS)
    tags = {EKS_CLUSTER_TAG: cluster_name, EKS_GROUP_TAG: nodegroup_name}
    ending = iam.PolicyStatement(
        actions=["autoscaling:TerminateInstanceInAutoScalingGroup"],
        resources=[groups],
        conditions={"StringEquals": {f"aws:ResourceTag/{tag}": value for tag, value in tags.items()}},
    )
    policy = iam.Policy(construct, "GuardPolicy", roles=[verification.guard_role], statements=[ending])
    justify_wildcard(policy, groups, "one group by its tags; EKS chooses its name")
