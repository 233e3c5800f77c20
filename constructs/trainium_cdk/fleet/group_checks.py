"""Checks of the nodes' Auto Scaling group, after the app has changed it."""

from collections.abc import Callable, Iterator

import jsii
from aws_cdk import CfnDeletionPolicy
from aws_cdk import aws_autoscaling as autoscaling
from constructs import IValidation

from trainium_runtime.naming import CLUSTER_TAG

_SIZE_CHANGES = (autoscaling.CfnScalingPolicy, autoscaling.CfnScheduledAction, autoscaling.CfnWarmPool)


@jsii.implements(IValidation)
class GroupChecks:
    """Rejects changes of the app to the Auto Scaling group that are incompatible with the fleet."""

    def __init__(
        self,
        group: autoscaling.CfnAutoScalingGroup,
        imported: Callable[[], autoscaling.IAutoScalingGroup | None],
        *,
        cluster_name: str,
    ) -> None:
        """
        Args:
            imported: Returns the L2 construct of the group, in whose scope the CDK adds policies; None if the app has
                not used it.
        """
        self._group, self._imported, self._cluster_name = group, imported, cluster_name

    def validate(self) -> list[str]:
        """One sentence for each problem."""
        return [*self._retained(), *self._resized(), *self._renamed()]

    def _retained(self) -> Iterator[str]:
        """A group that the app retains, for example with RemovalPolicies: its nodes would outlive the stack."""
        group = self._group
        if group.cfn_options.deletion_policy not in (None, CfnDeletionPolicy.DELETE):
            yield (
                f"{group.node.path}: got a removal policy that retains the Auto Scaling group; allowed: one that "
                "deletes it, since otherwise its nodes would run, and be billed, after the stack is deleted; fix: pass "
                "the types to retain to RemovalPolicies.of(...).retain(), apply_to_resource_types=['AWS::S3::Bucket']"
            )

    def _resized(self) -> Iterator[str]:
        """Scaling policies, schedules and warm pools of `auto_scaling_group`: the fleet sets its size."""
        imported = self._imported()
        for child in imported.node.find_all() if imported else ():
            if isinstance(child, _SIZE_CHANGES):
                yield (
                    f"{child.node.path}: got {type(child).__name__.removeprefix('Cfn')} on the Auto Scaling group of a "
                    "fleet; allowed: none, since a cluster trains with all of its nodes, and the fleet sets the size; "
                    "fix: remove it; change `nodes`, or use `end`, `trn sleep` and `trn wake`"
                )

    def _renamed(self) -> Iterator[str]:
        """Another value of the cluster's tag: functions and permissions find the nodes by the fleet's name."""
        tagged = self._group.tags.tag_values().get(CLUSTER_TAG)
        if tagged != self._cluster_name:
            yield (
                f"{self._group.node.path}: got {tagged!r} as the tag {CLUSTER_TAG}; allowed: {self._cluster_name!r}, "
                "the cluster_name of the fleet, by which its functions find the nodes; fix: do not set this tag; to "
                "change the name and replace the nodes, set another cluster_name for the fleet"
            )
