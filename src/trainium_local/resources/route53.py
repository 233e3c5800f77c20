"""DNS records: sets of them, alone and in groups, are changed in the zone that they stand in."""

from typing import Any

from trainium_local.resources import api
from trainium_local.resources.registry import Properties, Provisioned, ProvisioningError, Request, ResourceType


class _RecordSets(ResourceType):
    def create(self, request: Request) -> Provisioned:
        self._change(request, "CREATE", _sets(request.properties))
        name = request.properties.get("Name") or request.generated_name()
        return Provisioned(physical_id=str(name).rstrip("."), attributes={"Id": request.logical_id})

    def update(self, request: Request, current: Provisioned, previous: Properties) -> Provisioned:
        new = _sets(request.properties)
        kept = {_key(one) for one in new}
        self._change(request, "DELETE", [one for one in _sets(previous) if _key(one) not in kept])
        self._change(request, "UPSERT", new)
        return current

    def delete(self, request: Request, current: Provisioned) -> None:
        with api.gone_is_fine():
            self._change(request, "DELETE", _sets(request.properties))

    def _change(self, request: Request, action: str, sets: list[Properties]) -> None:
        if sets:
            changes = [{"Action": action, "ResourceRecordSet": _as_api(one)} for one in sets]
            arguments = {"HostedZoneId": _zone(request), "ChangeBatch": {"Changes": changes}}
            api.call("route53", "ChangeResourceRecordSets", request.region, arguments)


def _sets(properties: Properties) -> list[Properties]:
    return properties.get("RecordSets", [properties])


def _key(record_set: Properties) -> tuple[Any, ...]:
    return tuple(record_set.get(name) for name in ("Name", "Type", "SetIdentifier"))


def _as_api(record_set: Properties) -> Properties:
    alias = record_set.get("AliasTarget")
    return {
        **record_set,
        "ResourceRecords": [{"Value": value} for value in record_set.get("ResourceRecords") or []] or None,
        "AliasTarget": {"EvaluateTargetHealth": False, **alias} if alias else None,
    }


def _zone(request: Request) -> str:
    own = [request.properties, *_sets(request.properties)]
    for properties in own:
        if "HostedZoneId" in properties:
            return properties["HostedZoneId"]
    name = next((one["HostedZoneName"] for one in own if "HostedZoneName" in one), "")
    zones = api.call("route53", "ListHostedZonesByName", request.region, {"DNSName": name})["HostedZones"]
    found = [zone["Id"] for zone in zones if zone["Name"] == name]
    if not found:
        raise ProvisioningError(f"No hosted zones named {name} found")
    return found[0].removeprefix("/hostedzone/")


TYPES: dict[str, ResourceType] = {
    "AWS::Route53::RecordSet": _RecordSets(),
    "AWS::Route53::RecordSetGroup": _RecordSets(),
}
