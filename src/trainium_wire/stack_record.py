"""The record of a deployed cluster: written by its stack, read by the command line.

It is an SSM parameter, `/trn/CLUSTER/STACK/CONSTRUCT`. CloudFormation creates it before everything that is billed, and
deletes it after that. So it contains names that the stack chooses, and no IDs that services assign to billed resources.

The name differs with the construct: an update that renames a construct creates the new record first and deletes the old
one last. In between, the newer record applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from trainium_wire.formats import empty, json_value

RECORDS_PATH = "/trn"
"""The SSM path of all records of an account in a region."""

SCHEMA = 1
"""The version of the format. A change that an older command line would misread gets another version."""

LARGEST_RECORD = 4096
"""Bytes of the value of a standard SSM parameter."""


class StackRecordError(ValueError):
    """A parameter below RECORDS_PATH is not a record that this version can read."""


@dataclass(frozen=True)
class StackRecord:
    """What commands need to know of a cluster, or of the resources of its training jobs, in one stack.

    Attributes:
        stack: CloudFormation name of the stack.
        construct: A part of the unique address of the construct.
        engine: Key of the engine in trn:stacks.
        bucket: Bucket of the node records and jobs; of SageMaker's source, checkpoints and models.
        cache_url: S3 URL of the compile cache.
        settings: Settings of the deployed plan by key, without defaults, in the form of cdk.json.
        instance_type: Fields of the catalogue's entry for the instance type, unless it is a built-in one.
        group: Auto Scaling group of the nodes.
        sleep_function: Function that sets the stack's parameter `Asleep`; None if the stack has no such parameter.
        topic_arn: Topic of the notices of the pilot, whose tags hold what was decided about its end.
        role_arn: Role of the training jobs.
        subnet_ids: Subnets of the training jobs; empty for SageMaker's network.
        security_group_ids: Security groups of the training jobs.
        kms_key_arn: KMS key of the training jobs' files.
    """

    cluster: str
    stack: str
    construct: str
    engine: str
    bucket: str
    cache_url: str
    settings: Mapping[str, Any] = field(default_factory=empty)
    instance_type: Mapping[str, Any] | None = None
    group: str | None = None
    sleep_function: str | None = None
    topic_arn: str | None = None
    role_arn: str | None = None
    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    kms_key_arn: str | None = None

    @property
    def name(self) -> str:
        """The name of the parameter."""
        return parameter_name(self.cluster, self.stack, self.construct)

    @property
    def value(self) -> Mapping[str, Any]:
        """The value of the parameter before its conversion to JSON, without what its name says and without defaults."""
        given: dict[str, Any] = {key: value for key, value in asdict(self).items() if value and key not in _IN_THE_NAME}
        return {"schema": SCHEMA, **given, **{key: list(given[key]) for key in _LISTS if key in given}}

    @classmethod
    def from_parameter(cls, name: str, text: str) -> StackRecord:
        """Parse a parameter.

        Raises:
            StackRecordError: The name or the value is not that of a record, or the record has another schema.
        """
        try:
            _, _, cluster, stack, construct = name.split("/")
            raw: Any = json_value(text)
            schema = raw["schema"]
            if schema != SCHEMA:
                raise StackRecordError(
                    f"the record {name} has the schema {schema!r}, and this version of trn reads the schema {SCHEMA}: "
                    "use the version that deployed the stack, or deploy the stack with this one"
                )
            return cls(
                cluster=cluster,
                stack=stack,
                construct=construct,
                engine=_text(raw["engine"]),
                bucket=_text(raw["bucket"]),
                cache_url=_text(raw["cache_url"]),
                settings=_object(raw.get("settings", {})),
                instance_type=_object(raw["instance_type"]) if "instance_type" in raw else None,
                subnet_ids=_texts(raw.get("subnet_ids", [])),
                security_group_ids=_texts(raw.get("security_group_ids", [])),
                **{key: _text(raw[key]) for key in _OPTIONAL_TEXTS if key in raw},
            )
        except StackRecordError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise StackRecordError(f"the SSM parameter {name} is not a record of a stack: {error!r}") from error


_IN_THE_NAME = ("cluster", "stack", "construct")
_LISTS = ("subnet_ids", "security_group_ids")
_OPTIONAL_TEXTS = ("group", "sleep_function", "topic_arn", "role_arn", "kms_key_arn")


def parameter_name(cluster: str, stack: str, construct: str) -> str:
    """The name of the parameter with a record."""
    return f"{RECORDS_PATH}/{cluster}/{stack}/{construct}"


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{value!r} is not a text")
    return value


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    return tuple(map(_text, cast("list[Any]", values)))


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    return cast("dict[str, Any]", value)
