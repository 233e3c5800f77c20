"""Custom::TrnNodeSubnet: chooses the first subnet whose zone offers the nodes' instance type.

An update keeps the subnet while it is one of the candidates and the instance type has not changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .custom_resource import respond
from .log import log
from .permissions import retry_until_permitted


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    before = str(event.get("PhysicalResourceId"))
    if event["RequestType"] == "Delete":
        respond(event, physical_id=before)
        return
    properties, old = event["ResourceProperties"], event.get("OldResourceProperties", {})
    if before in properties["SubnetIds"] and properties["InstanceType"] == old.get("InstanceType"):
        # The nodes are in this subnet.
        respond(event, physical_id=before, data={"SubnetId": before})
        return
    try:
        zones, offering = retry_until_permitted(lambda: _describe(properties["SubnetIds"], properties["InstanceType"]))
    except Exception as error:  # CloudFormation needs a response
        unread = f"the zones of the subnets and of {properties['InstanceType']} could not be read: {error}"
        respond(event, failure=unread, physical_id=before)
        return
    chosen = next((subnet for subnet in properties["SubnetIds"] if zones.get(subnet) in offering), None)
    if chosen is None:
        respond(event, failure=_sentence(properties["InstanceType"], zones, offering), physical_id=before)
        return
    log(f"{chosen} in {zones[chosen]}")
    respond(event, physical_id=chosen, data={"SubnetId": chosen})


def _describe(subnets: Sequence[str], instance_type: str) -> tuple[Mapping[str, str], Sequence[str]]:
    """The zone IDs of the subnets by subnet ID, and the IDs of the zones that offer the type."""
    import boto3

    ec2: Any = boto3.client("ec2")
    described = ec2.describe_subnets(SubnetIds=list(subnets))["Subnets"]
    offers = ec2.describe_instance_type_offerings(
        LocationType="availability-zone-id", Filters=[{"Name": "instance-type", "Values": [instance_type]}]
    )["InstanceTypeOfferings"]
    zones = {subnet["SubnetId"]: subnet["AvailabilityZoneId"] for subnet in described}
    return zones, sorted(offer["Location"] for offer in offers)


def _sentence(instance_type: str, zones: Mapping[str, str], offering: Sequence[str]) -> str:
    locations = ", ".join(f"{subnet} in {zone}" for subnet, zone in zones.items())
    fix = (
        f"these zones of the region do: {', '.join(offering)}. "
        "Add a subnet in one of them to the VPC, and select it with vpc_subnets"
        if offering
        else "no zone of the region does. Choose another region or instance type"
    )
    return f"none of the subnets is in a zone that offers {instance_type}: {locations}; {fix}"
