"""The settings in the record of a deployed cluster, and the plan that follows from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, cast

from trainium_core.catalog.catalog import Catalog, builtin_catalog
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.plan.plan import Plan
from trainium_core.plan.settings_by_key import (
    GROUP_OF,
    SETTINGS,
    belongs_to_another_engine,
    constructor_arguments,
    setting_value,
)
from trainium_core.prices.price import PriceTable
from trainium_core.setting_schema.forms import UnreadableError, as_written
from trainium_runtime.errors import UnavailableError
from trainium_wire.stack_record import StackRecord

_NOT_RECORDED = (
    # In the name of the record, or different in each command.
    "cluster_name",
    "region",
    "stacks",
    # Files of the app. The record has the entry of the catalogue.
    "catalog",
    "prices",
    "setup_script",
    # No command uses them after the deployment. Tags can be long.
    "quota_check",
    "tags",
)
_EMAIL = "_email"
"""The end of the keys of settings that not everybody who lists clusters needs to see."""


class DeployedPlan(Plan):
    """The plan of a deployed cluster, which was validated before its deployment.

    Its instance type may be empty, for resources of training jobs, or unknown to this version of the catalogue.
    """

    def __post_init__(self) -> None:
        """Validates nothing: rules may have changed since the deployment, and a deployed cluster must be operable."""

    @property
    def type(self) -> InstanceType:
        """The catalogue's entry for the instance type. Raises UnavailableError if there is none."""
        if self.instance_type not in self.catalog:
            what = f"the catalogue has no {self.instance_type}" if self.instance_type else "its app names no type"
            raise UnavailableError(f"the instance type of {self.cluster_name} is unknown: {what}")
        return super().type


def recorded_settings(plan: Plan, engine: str, *, also: Sequence[str] = ()) -> Mapping[str, Any]:
    """The settings of a plan that the record of an engine's stack contains.

    Args:
        engine: Key of the engine. The settings of other engines are left out.
        also: Further settings.
    """
    keys = (key for key in SETTINGS if key in also or is_recorded(key, engine))
    return recorded_values({key: setting_value(plan, key) for key in keys})


def is_recorded(key: str, engine: str) -> bool:
    """Whether the record of an engine's stack contains a setting."""
    return not belongs_to_another_engine(key, engine) and key not in _NOT_RECORDED and not key.endswith(_EMAIL)


def recorded_values(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values by the keys of their settings in the form of cdk.json, without defaults other than the number of nodes."""
    given = {
        key: value for key, value in values.items() if key == "nodes" or value not in (None, SETTINGS[key].default)
    }
    return {key: _as_list(as_written(value)) for key, value in given.items()}


def _as_list(value: Any) -> Any:
    return [*cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value


def recorded_type(kind: InstanceType, region: str) -> Mapping[str, Any] | None:
    """The fields of an instance type for a record; None for a type of the built-in catalogue."""
    if builtin_catalog().get(kind.name) == kind:
        return None
    defaults = {field.name: field.default for field in fields(InstanceType)}
    values = {name: value for name, value in asdict(kind).items() if value != defaults[name]}
    here = {name: [*zones] for name, zones in kind.zones.items() if name == region}
    return {name: _as_list(value) for name, value in values.items()} | {"zones": here}


def deployed_plan(record: StackRecord, *others: StackRecord, region: str, prices: PriceTable) -> DeployedPlan:
    """The plan of the cluster of a record.

    Args:
        record: The record.
        others: Records of the cluster's stacks of other engines. Only settings of these engines are read from them.
        region: The region of the stacks.
        prices: The user's own prices.

    Raises:
        UnavailableError: Another version of this package deployed the stack, and this one cannot read a setting.
    """
    catalog = builtin_catalog()
    if record.instance_type is not None:
        catalog = _with_type(catalog, record)
    values = _values(record)
    for other in others:
        values |= {key: value for key, value in _values(other).items() if GROUP_OF[key] == other.engine}
    values.setdefault("instance_type", "")
    engines = tuple(dict.fromkeys(one.engine for one in (record, *others)))
    named = {"cluster_name": record.cluster, "region": region, "stacks": engines}
    return DeployedPlan(**constructor_arguments({**values, **named, "catalog": catalog, "prices": prices}))


def _values(record: StackRecord) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, raw in record.settings.items():
        if key not in SETTINGS:
            continue
        try:
            values[key] = SETTINGS[key].form.read(raw)
        except UnreadableError as error:
            raise _other_version(record, f"{key} is {raw!r}: {error}") from error
    return values


def _with_type(catalog: Catalog, record: StackRecord) -> Catalog:
    given: dict[str, Any] = {
        name: tuple(cast("list[Any]", value)) if isinstance(value, list) else value
        for name, value in (record.instance_type or {}).items()
    }
    given["zones"] = {region: tuple(zones) for region, zones in given.get("zones", {}).items()}
    try:
        kind = InstanceType(**given)
    except TypeError as error:
        raise _other_version(record, f"its instance type is {given!r}") from error
    return Catalog(_replaced(catalog.values(), kind), catalog.facts, catalog.sources)


def _replaced(types: Iterable[InstanceType], kind: InstanceType) -> list[InstanceType]:
    return [*(one for one in types if one.name != kind.name), kind]


def _other_version(record: StackRecord, problem: str) -> UnavailableError:
    fix = "use the version of trn that deployed the stack, or deploy the stack with this one"
    return UnavailableError(f"the record {record.name} cannot be used: {problem}; {fix}")
