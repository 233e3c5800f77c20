"""Types of the CDK as a type checker has to see them in parameters.

jsii names some parameters of classes otherwise than the interfaces that they implement (`_statement`, `statement`), so
that pyright refuses an `iam.Role` where an `iam.IRole` is expected.
"""

from typing import Protocol

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

Role = iam.IRole | iam.Role
Key = kms.IKey | kms.Key
Subnet = ec2.ISubnet | ec2.Subnet


class RuleTarget(Protocol):
    """What EventBridge can send an event to: events.IRuleTarget, whatever its parameters are called."""

    def bind(self, rule: events.IRule, id: str | None = None, /) -> events.RuleTargetConfig: ...
