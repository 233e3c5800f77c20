"""Which resources of a template belong to a cluster: a stack may also contain other resources."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from trainium_runtime.naming import CLUSTER_TAG

TemplateResources = Mapping[str, Mapping[str, Any]]
"""The resources of a template by logical ID."""

_TAG_PROPERTIES = ("Tags", "TagSpecifications", "FileSystemTags")
_HANDLERS = "trainium_runtime.handlers."
_CUSTOM = "Custom::Trn"
_METADATA = "AWS::CDK::Metadata"
_ATTACHMENTS = (
    "AWS::Budgets::Budget",
    "AWS::EC2::Route",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPCGatewayAttachment",
    "AWS::EFS::MountTarget",
    "AWS::IAM::InstanceProfile",
    "AWS::IAM::Policy",
    "AWS::Lambda::Permission",
    "AWS::Logs::ResourcePolicy",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SNS::TopicPolicy",
    "AWS::Scheduler::Schedule",
)
"""Resource types without tags, which belong to the resource that they name."""


def clusters_in(resources: TemplateResources) -> tuple[str, ...]:
    """The clusters in the tags of resources, in the order of the template."""
    return tuple(dict.fromkeys(value for made in resources.values() for value in _cluster_tags(made)))


def resources_of(resources: TemplateResources, cluster: str) -> frozenset[str]:
    """Logical IDs of a cluster's resources: tagged ones, this package's functions, and what is attached to them."""
    own = {name for name, made in resources.items() if cluster in _cluster_tags(made) or _is_custom(made)}
    for name, made in resources.items():
        properties = made.get("Properties", {})
        if str(properties.get("Handler", "")).startswith(_HANDLERS) and not set(_cluster_tags(made)) - {cluster}:
            own |= {name, *_references({key: properties.get(key) for key in ("Role", "LoggingConfig")})}
    attached = {name for name, made in resources.items() if made["Type"] in _ATTACHMENTS and _concerns(made, own)}
    return frozenset(own | attached | {name for name, made in resources.items() if made["Type"] == _METADATA})


def _is_custom(made: Mapping[str, Any]) -> bool:
    return made["Type"].startswith(_CUSTOM)


def _concerns(made: Mapping[str, Any], own: Collection[str]) -> bool:
    properties = made.get("Properties", {})
    return CLUSTER_TAG in str(properties) or any(name in own for name in _references(properties))


def _references(value: Any) -> Iterator[str]:
    """The logical IDs in a value, at any depth."""
    if isinstance(value, list):
        for element in cast("list[Any]", value):
            yield from _references(element)
    elif isinstance(value, Mapping):
        for key, element in cast("Mapping[str, Any]", value).items():
            match key, element:
                case "Ref", str():
                    yield element
                case "Fn::GetAtt", [str(name), *_]:
                    yield name
                case _:
                    yield from _references(element)


def _cluster_tags(made: Mapping[str, Any]) -> Iterator[str]:
    properties = made.get("Properties", {})
    for name in _TAG_PROPERTIES:
        yield from _tag_values(properties.get(name))


def _tag_values(tags: Any) -> Iterator[str]:
    """The values of the tag trn:cluster. Services take tags as a list, as a map, or by resource type."""
    match tags:
        case {"Key": key, "Value": str(value)}:
            if key == CLUSTER_TAG:
                yield value
        case {"Tags": inner}:
            yield from _tag_values(inner)
        case Mapping():
            found = cast("Mapping[str, Any]", tags).get(CLUSTER_TAG)
            if isinstance(found, str):
                yield found
        case list():
            for tag in cast("list[Any]", tags):
                yield from _tag_values(tag)
        case _:
            pass
