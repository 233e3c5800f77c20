"""The SSM parameter by which `trn` finds what a stack deployed."""

from collections.abc import Callable
from typing import Any

import jsii
from aws_cdk import IStableStringProducer, Lazy, Stack
from aws_cdk import aws_ssm as ssm
from constructs import Construct, IValidation

from trainium_wire.stack_record import LARGEST_RECORD, StackRecord, parameter_name

_LONGEST_PSEUDO_PARAMETER = 16
"""At least the length of each region, partition and account ID, and of the part of a stack's ID in a name."""
_LONGEST_REFERENCE = 128
"""The assumed length of a value that is known only at the deployment: longer than an ARN of a role or key."""


class StackRecordParameter(Construct):
    """The record of a cluster. Everything that is billed must depend on it, so that it exists as long as that."""

    parameter: ssm.CfnParameter

    def __init__(
        self, scope: Construct, construct_id: str, *, cluster_name: str, record: Callable[[], StackRecord]
    ) -> None:
        """
        Args:
            record: Returns the record, at the end of the synthesis. It must not refer to anything that is billed.
        """
        super().__init__(scope, construct_id)
        value: Any = _Value(self, record)
        self.parameter = ssm.CfnParameter(
            self,
            "Parameter",
            type="String",
            name=parameter_name(cluster_name, Stack.of(self).stack_name, recorded_construct(scope)),
            value=Lazy.string(value),
            description=f"What trn needs to know of {cluster_name}",
        )
        self.node.add_validation(value)


def recorded_construct(scope: Construct) -> str:
    """The part of the name of a record that differs with the construct that the record describes."""
    return scope.node.addr[-8:]


@jsii.implements(IStableStringProducer, IValidation)
class _Value:
    def __init__(self, scope: Construct, record: Callable[[], StackRecord]) -> None:
        self._scope, self._record = scope, record

    def produce(self) -> str:
        return Stack.of(self._scope).to_json_string(self._record().value)

    def validate(self) -> list[str]:
        """One sentence for each problem."""
        stack = Stack.of(self._scope)
        length = _longest(stack.resolve(self.produce()))
        if length <= LARGEST_RECORD:
            return []
        settings = self._record().settings
        sizes = {key: _longest(stack.resolve(stack.to_json_string(value))) for key, value in settings.items()}
        longest = sorted(sizes, key=lambda key: sizes[key], reverse=True)[:3]
        shown = ", ".join(f"{key} ({sizes[key]:,} bytes)" for key in longest)
        return [
            f"{self._scope.node.path}: got a record of up to {length:,} bytes; allowed: {LARGEST_RECORD:,} bytes, as "
            f"much as an SSM parameter holds; fix: shorten the longest settings: {shown}"
        ]


def _longest(resolved: Any) -> int:
    """The largest number of bytes that a resolved text can have after the deployment."""
    match resolved:
        case str():
            return len(resolved.encode())
        case {"Fn::Join": ["", [*parts]]}:
            return sum(_longest(part) for part in parts)
        case {"Ref": "AWS::Partition" | "AWS::Region" | "AWS::AccountId"} | {"Fn::Select": _}:
            return _LONGEST_PSEUDO_PARAMETER
        case _:
            return _LONGEST_REFERENCE
