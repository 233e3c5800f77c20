"""Types of the CDK for parameters, in the form that type checkers accept.

In jsii, some method parameters of a class have other names than in the interface that it implements (`_statement`,
`statement`), so pyright rejects an `iam.Role` where an `iam.IRole` is expected.
"""

from typing import Protocol

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns

Role = iam.IRole | iam.Role
Key = kms.IKey | kms.Key
Subnet = ec2.ISubnet | ec2.Subnet
Topic = sns.ITopic | sns.Topic


class RuleTarget(Protocol):
    """A target of an EventBridge rule: events.IRuleTarget without its parameter names."""

    def bind(self, rule: events.IRule, id: str | None = None, /) -> events.RuleTargetConfig: ...
