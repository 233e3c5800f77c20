"""Deployed CloudFormation stacks."""
