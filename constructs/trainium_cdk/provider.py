"""The provider of a stack: the function that implements its custom resources."""

from functools import cache

from aws_cdk import Stack

from trainium_cdk.handler_function import HandlerFunction

_ID = "TrainiumCdkProvider"
"""ID of the function in the scope of the stack, where it must not conflict with ids of the app."""


@cache
def provider(stack: Stack) -> HandlerFunction:
    """The provider of a stack, for all its custom resources except those that implement themselves.

    Allow its role only to read. Where it writes to a bucket, the policy of the bucket allows it to. Only CloudFormation
    invokes it, so it never reads what nodes or users write.
    """
    return HandlerFunction(stack, _ID, handler="provider", timeout_minutes=15)
