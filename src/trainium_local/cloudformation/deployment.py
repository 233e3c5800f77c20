"""Turns a request into a deployment: validates the template, resolves parameters, merges tags."""

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import unquote, urlparse

from botocore.exceptions import ClientError

from trainium_local.cloudformation.errors import InsufficientCapabilitiesError, ValidationError
from trainium_local.cloudformation.intrinsic_functions import IntrinsicFunctions, Lookup
from trainium_local.cloudformation.parameters import resolve
from trainium_local.cloudformation.stack import Deployment, Region, Stack, StackResource
from trainium_local.cloudformation.template import Template
from trainium_local.cloudformation.template_checks import check, check_values
from trainium_local.resources import api, schemas
from trainium_local.resources.registry import Properties
from trainium_local.resources.schemas import KNOWN_AFTER_APPLY

#: Supported resource types that require a capability -> the property that sets a custom name, or None.
#: https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html (2026-11-22).
_IAM_TYPES = {
    "AWS::IAM::AccessKey": None,
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Policy": None,
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
}
_NO_VALUE = {"Ref": "AWS::NoValue"}
_PATH_STYLE_HOST = re.compile(r"(s3[.-].*|s3|localhost|127\..*|\[?::1\]?)$")
MAX_BYTES_IN_REQUEST, _MAX_BYTES_IN_S3 = 51_200, 1_000_000
"""Bytes of a template: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"""


def fetch_template(url: str, region: str) -> str:
    """Return the template at a TemplateURL (path-style or virtual-hosted).

    Raises:
        ValidationError: The template cannot be read, is not UTF-8, or is too large.
    """
    parsed = urlparse(url)
    host, path = parsed.hostname or "", unquote(parsed.path.lstrip("/"))
    if _PATH_STYLE_HOST.match(host):
        bucket, _, key = path.partition("/")
    else:
        bucket, key = re.split(r"\.s3[.-]|\.localhost", host)[0], path
    try:
        text = api.call("s3", "GetObject", region, {"Bucket": bucket, "Key": key})["Body"].read().decode()
    except (ClientError, UnicodeDecodeError) as error:
        raise ValidationError(f"S3 error: {error} ({bucket}/{key})") from error
    refuse_large_body(text, _MAX_BYTES_IN_S3)
    return text


def refuse_large_body(body: str, most: int) -> None:
    """Raise ValidationError if the text of a template has more than `most` bytes."""
    if len(body.encode()) > most:
        raise ValidationError(
            "1 validation error detected: Value at 'templateBody' failed to satisfy constraint: Member must have "
            f"length less than or equal to {most}"
        )


def prepare(
    region: Region,
    body: str,
    parameter_values: Mapping[str, str],
    tags: Mapping[str, str],
    capabilities: Collection[str],
) -> Deployment:
    """Return the deployment.

    Raises:
        InsufficientCapabilitiesError: The template requires a capability that is not acknowledged.
        ValidationError: CloudFormation would refuse the request before any change, or the embedded AWS does not support
            the template.
    """
    try:
        template = Template.parse(body)
        check(template, region.name)
        _check_capabilities(template, capabilities)
        parameters = resolve(template, parameter_values, region.name)
        values = {name: parameter.value for name, parameter in parameters.items()} | _pseudo_parameters(region, None)
        check_values(template, values, region.name)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ValidationError(f"Template format error: unsupported structure. ({error!r})") from error
    return Deployment(template=template, parameters=parameters, tags=dict(tags))


def _check_capabilities(template: Template, acknowledged: Collection[str]) -> None:
    resources = [resource for resource in template.resources.values() if resource["Type"] in _IAM_TYPES]
    names = [resource.get("Properties", {}).get(_IAM_TYPES[resource["Type"]], _NO_VALUE) for resource in resources]
    needed = "CAPABILITY_NAMED_IAM" if any(name != _NO_VALUE for name in names) else "CAPABILITY_IAM"
    if resources and not {needed, "CAPABILITY_NAMED_IAM"} & set(acknowledged):
        raise InsufficientCapabilitiesError(f"Requires capabilities : [{needed}]")


def _pseudo_parameters(region: Region, stack: Stack | None) -> dict[str, Any]:
    return {
        "AWS::AccountId": region.account,
        "AWS::NotificationARNs": (stack.settings.get("NotificationARNs") or []) if stack else KNOWN_AFTER_APPLY,
        "AWS::Partition": "aws",
        "AWS::Region": region.name,
        "AWS::StackId": stack.stack_id if stack else KNOWN_AFTER_APPLY,
        "AWS::StackName": stack.name if stack else KNOWN_AFTER_APPLY,
        "AWS::URLSuffix": "amazonaws.com",
    }


class Existing(Lookup):
    """A Lookup of existing values: the resources of a stack, and the exports of other stacks.

    Attributes:
        imports: Names of the exports that were read.
    """

    def __init__(self, region: Region, stack: Stack) -> None:
        self._region, self._stack = region, stack
        self.imports = set[str]()

    def ref(self, logical_id: str) -> str:
        return self._get(logical_id).physical_id

    def attribute(self, logical_id: str, name: str) -> Any:
        resource = self._get(logical_id)
        if name in resource.provisioned.attributes:
            return resource.provisioned.attributes[name]
        value: Any = resource.properties
        for step in name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if value is not None:
            return value
        if schemas.is_custom(resource.resource_type):
            raise ValidationError(
                f"CustomResource attribute error: Vendor response doesn't contain {name} attribute in object "
                f"{resource.physical_id}"
            )
        raise ValidationError(
            f"the embedded AWS does not support the attribute {name} of {resource.resource_type} ({logical_id})"
        )

    def export(self, name: str) -> str:
        exports = self._region.exports()
        if name not in exports:
            raise ValidationError(f"No export named {name} found.")
        self.imports.add(name)
        return exports[name][1]

    def _get(self, logical_id: str) -> StackResource:
        if logical_id not in self._stack.resources:
            raise ValidationError(f"Unresolved resource dependencies [{logical_id}]: its condition is false")
        return self._stack.resources[logical_id]


def resolver(region: Region, stack: Stack, deployment: Deployment, lookup: Lookup) -> IntrinsicFunctions:
    """Return a resolver of the deployment's values for the stack."""
    values = {name: parameter.value for name, parameter in deployment.parameters.items()}
    return IntrinsicFunctions(
        template=deployment.template,
        parameters=_pseudo_parameters(region, stack) | values,
        lookup=lookup,
        region=stack.region,
    )


def with_stack_tags(resource_type: str, region: str, properties: Properties, tags: Mapping[str, str]) -> Properties:
    """Add the stack's tags to the properties of a resource, if its type supports tags.

    The resource's own tags take precedence.
    """
    schema = schemas.find(resource_type, region)
    if not tags or schema is None or schema.tag_property is None:
        return properties
    own = properties.get(schema.tag_property)
    if schema.tags_are_a_map:
        return {**properties, schema.tag_property: {**tags, **(own or {})}}
    taken = {tag["Key"] for tag in own or []}
    added = [{"Key": key, "Value": value} for key, value in tags.items() if key not in taken]
    return {**properties, schema.tag_property: [*(own or []), *added]}
