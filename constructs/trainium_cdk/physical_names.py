"""Names of resources that the record of a stack contains, which exists before the resources."""

from typing import Any

import jsii
from aws_cdk import Fn, IStableStringProducer, Lazy, Stack
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_core.naming import NODE_RECORDS_BUCKETS
from trainium_core.permissions.roles import stack_name_characters


def physical_name(scope: Construct, purpose: str) -> str:
    """A name that begins like the names that CloudFormation chooses, so that policies for these names apply to it.

    It contains a part of the construct's address, because a stack may have several constructs with the same purpose,
    and a part of the stack's ID, because an earlier stack may have left a resource with the same path.

    Args:
        scope: The construct of the resource.
        purpose: What the resource is for.
    """
    return f"{_prefix(Stack.of(scope))}-{purpose}-{scope.node.addr[-8:]}-{_stack_id_suffix(scope)}"


def physical_bucket_name(scope: Construct, purpose: str) -> str:
    """A name as physical_name(), for a bucket: at most 63 lower-case characters, if `purpose` has up to 20."""
    return f"{_prefix(Stack.of(scope)).lower()}-{purpose}-{scope.node.addr[-8:]}-{_stack_id_suffix(scope)}"


def node_records_bucket_name(scope: Construct) -> str:
    """A name that does not begin with that of the stack, because policies of a plan apply to the bucket of any app."""
    return f"{NODE_RECORDS_BUCKETS}-{scope.node.addr[-8:]}-{_stack_id_suffix(scope)}"


def recorded_bucket_name(scope: Construct, bucket: s3.IBucket) -> str:
    """The name of a bucket for the record of a stack; a reference only if the stack does not choose the name.

    Args:
        scope: The construct of the record.
    """
    producer: Any = _BucketName(scope, bucket)
    return Lazy.string(producer)


def _prefix(stack: Stack) -> str:
    while stack.nested_stack_parent is not None:
        stack = stack.nested_stack_parent  # the name of a nested stack is unknown, but begins with that of its parent
    return stack.stack_name[: stack_name_characters()]


def _stack_id_suffix(scope: Construct) -> str:
    """The first eight digits of the UUID in the stack's ID, arn:aws:cloudformation:REGION:ACCOUNT:stack/NAME/UUID."""
    return Fn.select(0, Fn.split("-", Fn.select(2, Fn.split("/", Stack.of(scope).stack_id))))


@jsii.implements(IStableStringProducer)
class _BucketName:
    """Read at the end of the synthesis, because an aspect of the app may rename the bucket."""

    def __init__(self, scope: Construct, bucket: s3.IBucket) -> None:
        self._scope, self._bucket = scope, bucket

    def produce(self) -> str:
        resource = self._bucket.node.default_child
        chosen = resource.bucket_name if isinstance(resource, s3.CfnBucket) and self._is_here(resource) else None
        return chosen or self._bucket.bucket_name

    def _is_here(self, resource: s3.CfnBucket) -> bool:
        return Stack.of(resource) is Stack.of(self._scope)
