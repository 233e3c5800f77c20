"""Asks CloudFormation and Auto Scaling what a change set means for nodes."""

from trainium_core.nodes.aws_groups import AwsNodeGroupControl
from trainium_core.stacks.aws_change_sets import AwsChangeSets


class AwsNodeChanges(AwsChangeSets, AwsNodeGroupControl):
    """Implements trainium_core.nodes.ending_nodes.NodeChanges."""
