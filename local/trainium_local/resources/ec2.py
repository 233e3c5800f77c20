"""What the EC2 types have in common."""

from __future__ import annotations

from typing import Any

from trainium_local.resources import api
from trainium_local.resources.api_resource import ApiResource, Tagging
from trainium_local.resources.registry import Request


def ec2_tagging(resource: str = "{id}") -> Tagging:
    """EC2 takes the tags of all its types in one call; `resource` is the id that it knows them by."""
    return Tagging(identified_by={"Resources": [resource]}, tag="CreateTags", untag="DeleteTags", keys="")


def ec2_resource(noun: str, tag_type: str, kind: type[ApiResource] = ApiResource, **more: Any) -> ApiResource:
    """A type that keeps to EC2's custom: CreateX answers with an X that has an XId, which DeleteX takes.

    tag_type: what EC2 calls the type where tags are given. more: what differs from the custom.
    """
    by_custom: dict[str, Any] = {
        "tagging": ec2_tagging(),
        "create_call": f"Create{noun}",
        "physical_id": f"{{answer[{noun}][{noun}Id]}}",
        "delete_call": f"Delete{noun}",
        "identified_by": {f"{noun}Id": "{id}"},
    }
    attributes = {f"{noun}Id": "{id}"} | more.pop("attributes", {})
    return kind(service="ec2", ec2_tag_type=tag_type, **{**by_custom, "attributes": attributes, **more})


def ec2(request: Request, operation: str, **arguments: Any) -> dict[str, Any]:
    """Call EC2 in the region of the request."""
    return api.call("ec2", operation, request.region, arguments)


def interfaces(request: Request, filter_name: str, value: str) -> list[Any]:
    """The network interfaces that a filter of EC2 finds."""
    return ec2(request, "DescribeNetworkInterfaces", Filters=[{"Name": filter_name, "Values": [value]}])[
        "NetworkInterfaces"
    ]
