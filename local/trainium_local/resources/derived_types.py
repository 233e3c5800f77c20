"""The types of derived_types.toml, which scripts/resource_types writes: each passed a sweep against the pinned moto.

A few want their properties in another form than a row can say.
"""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from typing import Any

from trainium_local.resources import api
from trainium_local.resources.api_resource import Tagging
from trainium_local.resources.derived import DerivedResource
from trainium_local.resources.registry import Properties, Request, ResourceType
from trainium_local.resources.settings import Members, OwnCalls, Setting


class _Secret(DerivedResource):
    """A secret whose text may be generated."""

    def _create_arguments(self, request: Request, facts: Any) -> dict[str, Any]:
        arguments = super()._create_arguments(request, facts)
        wanted = request.properties.get("GenerateSecretString")
        if wanted is None:
            return arguments
        text = api.call(self.service, "GetRandomPassword", request.region, wanted)["RandomPassword"]
        if "GenerateStringKey" in wanted:
            template = json.loads(wanted.get("SecretStringTemplate") or "{}")
            text = json.dumps({**template, wanted["GenerateStringKey"]: text})
        return {**arguments, "SecretString": text}

    def not_applied(self, request: Request) -> list[str]:
        return [name for name in super().not_applied(request) if name != "GenerateSecretString"]


def _instance_arguments(instance: Properties) -> Properties:
    """An instance as RunInstances takes it."""
    placement = {"GroupName": "PlacementGroupName", "AvailabilityZone": "AvailabilityZone", "Tenancy": "Tenancy"}
    interfaces = [
        {**interface, "Groups": interface.get("GroupSet")} for interface in instance.get("NetworkInterfaces") or []
    ]
    profile = instance.get("IamInstanceProfile")
    return {
        **instance,
        "Placement": {new: instance[old] for new, old in placement.items() if old in instance} or None,
        "NetworkInterfaces": interfaces or None,
        "IamInstanceProfile": {"Name": profile} if profile else None,
        "Monitoring": {"Enabled": instance["Monitoring"]} if "Monitoring" in instance else None,
        "SecurityGroupIds": instance.get("SecurityGroupIds"),
    }


def _with_plain_engine(database: Properties) -> Properties:
    """A database whose engine is in small letters: RDS takes `MySQL` too."""
    return {**database, **({"Engine": str(database["Engine"]).lower()} if "Engine" in database else {})}


def _dhcp_arguments(options: Properties) -> Properties:
    """DHCP options as a list of keys and values: DomainNameServers -> domain-name-servers."""
    names = ("DomainName", "DomainNameServers", "NetbiosNameServers", "NetbiosNodeType", "NtpServers")
    values = {_dashed(name): options[name] for name in names if name in options}
    return {
        "DhcpConfigurations": [
            {"Key": key, "Values": value if isinstance(value, list) else [value]} for key, value in values.items()
        ]
    }


def _dashed(name: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("-")


#: Type -> its class, and what its row cannot say.
_ADAPTED: dict[str, tuple[type[DerivedResource], dict[str, Any]]] = {
    "AWS::EC2::DHCPOptions": (DerivedResource, {"adapt": _dhcp_arguments}),
    "AWS::EC2::Instance": (DerivedResource, {"adapt": _instance_arguments}),
    "AWS::RDS::DBCluster": (DerivedResource, {"adapt": _with_plain_engine}),
    "AWS::RDS::DBInstance": (DerivedResource, {"adapt": _with_plain_engine}),
    "AWS::SecretsManager::Secret": (_Secret, {}),
}


def _own_calls(row: dict[str, Any]) -> OwnCalls:
    remove = row.pop("remove", None)
    if remove is None:
        return Setting(**row)
    argument = row["argument"]
    return Members(
        property_name=row["property_name"],
        add=row["operation"],
        remove=remove,
        arguments=lambda member: {argument: [member]},
        part_of_creation=row.get("part_of_creation", False),
    )


def row_type(resource_type: str, row: dict[str, Any]) -> DerivedResource:
    """The resource type of a row of derived_types.toml."""
    kind, more = _ADAPTED.get(resource_type, (DerivedResource, {}))
    fields: dict[str, Any] = {**row, **more}
    fields["settings"] = tuple(_own_calls(dict(one)) for one in row.get("settings", ()))
    fields["read_path"] = tuple(row.get("read_path", ()))
    if "tagging" in row:
        fields["tagging"] = Tagging(**row["tagging"])
    return kind(**fields)


def types() -> dict[str, ResourceType]:
    """All types of derived_types.toml."""
    table = tomllib.loads((files("trainium_local.resources") / "derived_types.toml").read_text())
    return {name: row_type(name, row) for name, row in table["types"].items()}
