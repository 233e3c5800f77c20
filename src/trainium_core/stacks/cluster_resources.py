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
"""Resource types that are not tagged.

A resource of these types belongs to a cluster if it refers to a resource of the cluster, or to the tag trn:cluster.
"""


def tagged_cluster(tags: Mapping[str, str], resources: TemplateResources) -> str | None:
    """The name of the cluster, from the tags of a stack, else of its resources; None without the tag trn:cluster.

    The CDK tags stacks only if an app configures stack tags.
    """
    if CLUSTER_TAG in tags:
        return tags[CLUSTER_TAG]
    return next((value for resource in resources.values() for value in _cluster_tags(resource)), None)


def cluster_resources(resources: TemplateResources, cluster: str) -> frozenset[str]:
    """Logical IDs of a cluster's resources.

    These are the tagged resources, this package's custom resources and functions, with their roles and log groups, the
    resources attached to any of these, and the metadata of the CDK.
    """
    own = {name for name, resource in resources.items() if cluster in _cluster_tags(resource) or _is_custom(resource)}
    for name, resource in resources.items():
        properties = resource.get("Properties", {})
        if str(properties.get("Handler", "")).startswith(_HANDLERS) and not set(_cluster_tags(resource)) - {cluster}:
            own |= {name, *_references({key: properties.get(key) for key in ("Role", "LoggingConfig")})}
    attached = {
        name for name, resource in resources.items() if resource["Type"] in _ATTACHMENTS and _concerns(resource, own)
    }
    return frozenset(own | attached | {name for name, resource in resources.items() if resource["Type"] == _METADATA})


def _is_custom(resource: Mapping[str, Any]) -> bool:
    return resource["Type"].startswith(_CUSTOM)


def _concerns(resource: Mapping[str, Any], own: Collection[str]) -> bool:
    properties = resource.get("Properties", {})
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


def _cluster_tags(resource: Mapping[str, Any]) -> Iterator[str]:
    properties = resource.get("Properties", {})
    for name in _TAG_PROPERTIES:
        yield from _tag_values(properties.get(name))


def _tag_values(tags: Any) -> Iterator[str]:
    """The values of the tag trn:cluster in a property: a list of tags, a map, or a list of tags by resource type."""
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
