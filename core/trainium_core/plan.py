"""The plan: what cluster is wanted, validated and immutable. Everything else is a projection of it."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from trainium_core.catalog import Catalog, CatalogError, InstanceType, builtin_catalog, load_catalog
from trainium_core.facts import facts
from trainium_core.forms import UnreadableError
from trainium_core.neuron_software import Framework, framework_of_parameter
from trainium_core.prices import PriceTable, no_prices
from trainium_core.prices_file import PricesError, load_prices
from trainium_core.problems import SETTING_PREFIX, PlanError, Problem, nearest
from trainium_core.settings import SETTINGS, Egress, zone_name_hint


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What cluster is wanted. Each field is a setting: settings.SETTINGS tells its form, default and meaning.

    `setup_script` is the script's text, `catalog` and `prices` what the files hold, where the settings are paths.
    Raises PlanError with every problem found.
    """

    instance_type: str
    region: str
    nodes: int = 1
    capacity: str = "on-demand"
    reservation_id: str | None = None
    availability_zone_id: str | None = None
    ami: str = field(default_factory=lambda: facts()["image"]["ssm_parameter"])
    ami_parameter: str | None = None
    cluster_name: str = "trn-pilot"
    vpc_id: str | None = None
    subnet_id: str | None = None
    route_table_id: str | None = None
    vpc_cidr: str = "10.42.0.0/16"
    egress: Egress | None = None
    secondary_interface_type: str = "efa"
    placement_group: str | None = None
    root_volume_gib: int = field(default_factory=lambda: facts()["root_volume"]["default_gib"])
    root_volume_throughput: int = field(default_factory=lambda: facts()["root_volume_speed"]["default_mib_per_second"])
    root_volume_initialization: int | None = None
    root_device_name: str = field(default_factory=lambda: facts()["image"]["root_device_name"])
    logical_neuroncore_config: int | None = None
    cache_bucket: str | None = None
    cache_at_destroy: str | None = None
    cache_expiration_days: int = 90
    node_timeout_minutes: int = 50
    neuron_software: str = "image"
    suppress_checks: tuple[str, ...] = ()
    verification: str = "enforce"
    node_recovery: str = "on"
    node_replacements: int = 2
    internode_ssh: str = "off"
    fsx_lustre: int | str | None = None
    fsx_lustre_mount_name: str | None = None
    fsx_lustre_security_group: str | None = None
    efs: str | None = None
    efs_security_group: str | None = None
    file_systems_at_destroy: str = "destroy"
    ends: str | None = None
    ends_action: str = "sleep"
    warning_hours: int = 24
    notify_email: str | None = None
    budget_usd: int | None = None
    budget_action: str = "notify"
    quota_gate: str = "on"
    setup_script: str | None = None
    catalog: Catalog = field(default_factory=builtin_catalog, repr=False)
    prices: PriceTable = field(default_factory=no_prices, repr=False)
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    stacks: tuple[str, ...] = ("cluster",)
    sagemaker_vpc: str = "off"
    sagemaker_image: str | None = None
    sagemaker_data: str | None = None
    sagemaker_budget_hours: int = 24
    sagemaker_capacity_retries: int = 5
    sagemaker_report_email: str | None = None
    sagemaker_kms_key: str | None = None
    sagemaker_output_at_destroy: str = "destroy"
    hyperpod_orchestrator: str = "slurm"
    hyperpod_eks_cluster: str | None = None
    hyperpod_controller_type: str = field(default_factory=lambda: facts()["hyperpod"]["controller_types"][0])
    hyperpod_training_plan: str | None = None
    hyperpod_deep_health_checks: str = "on"

    def __post_init__(self) -> None:
        from trainium_core.rules import broken_rules

        given = {name: getattr(self, name) for name in SETTINGS if name not in _LOADED}
        malformed = [p for name, value in given.items() if value is not None for p in _form_problems(name, value)]
        problems = malformed + broken_rules(self, {problem.key for problem in malformed})
        if problems:
            raise PlanError(problems)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], folder: Path) -> "Plan":
        """The plan that settings without their prefix describe; paths in them are relative to `folder`.

        Raises PlanError with every problem found, those of single values and those between values together.
        """
        from trainium_core.rules import broken_rules

        problems = [_unknown_setting(name, value) for name, value in settings.items() if name not in SETTINGS]
        values: dict[str, Any] = {}
        for name, setting in SETTINGS.items():
            if name not in settings:
                if setting.default is None:
                    problems.append(_missing(name))
                continue
            raw = str(folder / str(settings[name])) if name in _LOADED else settings[name]
            try:
                value = setting.form.read(raw)
                values[name] = _LOADED[name](value) if name in _LOADED else value
            except (CatalogError, PricesError) as error:
                problems.append(Problem(key=name, got=settings[name], allowed=setting.form.allowed, fix=str(error)))
            except UnreadableError as error:
                problems.append(_malformed(name, settings[name], str(error)))
        if not problems:
            return cls(**values)
        draft = object.__new__(cls)
        for known in fields(cls):
            object.__setattr__(draft, known.name, values.get(known.name, _default(known)))
        raise PlanError(problems + broken_rules(draft, {problem.key for problem in problems}))

    @property
    def type(self) -> InstanceType:
        """The catalogue's entry for the instance type."""
        return self.catalog[self.instance_type]

    @property
    def zone_id(self) -> str | None:
        """The Availability Zone id of a new subnet; None in a VPC of your own whose zone the subnet alone knows."""
        if self.availability_zone_id or self.vpc_id:
            return self.availability_zone_id
        return self.type.zones[self.region][0]

    @property
    def effective_egress(self) -> Egress | Literal["existing"]:
        """The way out of a new VPC; `existing` in a VPC of your own."""
        return "existing" if self.vpc_id else self.egress or "vpc-endpoints"

    @property
    def cache_outlives_cluster(self) -> bool:
        """Whether the compile cache is kept at destroy; a bucket of your own always is."""
        return self.cache_bucket is not None or self.cache_at_destroy == "retain"

    @property
    def stops_at_budget(self) -> bool:
        return self.budget_usd is not None and self.budget_action == "stop"

    @property
    def ends_by_itself(self) -> bool:
        """Whether a clock must turn the nodes off, or on: for an end, a budget or a Capacity Block."""
        return self.ends is not None or self.stops_at_budget or self.capacity == "capacity-block"

    @property
    def uses_efa(self) -> bool:
        return self.type.efa_interfaces > 0

    @property
    def creates_placement_group(self) -> bool:
        """Whether a cluster placement group of the plan's own is wanted.

        Never with a Capacity Block, and not with a reservation: instances in a placement group only match a
        reservation that was made in that group.
        """
        return self.uses_efa and self.capacity in ("on-demand", "spot") and self.placement_group is None

    @property
    def lnc(self) -> int:
        """Physical NeuronCores per logical core (LNC)."""
        return self.logical_neuroncore_config or self.type.default_logical_neuroncore_config

    @property
    def neuron_cores_per_node(self) -> int:
        """Logical NeuronCores per node: what torchrun starts a process for."""
        return self.type.logical_neuron_cores(self.lnc)

    @property
    def ami_is_parameter(self) -> bool:
        return self.ami.startswith("/")

    @property
    def framework(self) -> Framework | None:
        """The framework that the image's parameter promises; None when it promises none, or more than one."""
        return framework_of_parameter(self.image_parameter)

    @property
    def image_parameter(self) -> str | None:
        """The SSM parameter that names the image, or that a pinned image was taken from; None when there is none."""
        return self.ami if self.ami_is_parameter else self.ami_parameter


_LOADED: Mapping[str, Callable[[Any], Any]] = {"setup_script": str, "catalog": load_catalog, "prices": load_prices}
"""What is made of a file; the settings are its path."""


def _form_problems(name: str, value: Any) -> list[Problem]:
    """What is wrong with a value that Python code gave: it must be just what its form would read it as."""
    try:
        read = SETTINGS[name].form.read(value)
    except UnreadableError as error:
        return [_malformed(name, value, str(error))]
    if read == value and (type(read) is type(value) or name == "tags"):
        return []
    return [_malformed(name, value, f"give {read!r}, of type {type(read).__name__}")]


def _malformed(name: str, got: Any, fix: str) -> Problem:
    form = SETTINGS[name].form
    if name == "availability_zone_id" and zone_name_hint(str(got)):
        fix = "that is a zone name, which means another zone in every account; give the id, see `trn types`"
    return Problem(key=name, got=got, allowed=form.allowed, nearest=nearest(str(got), form.choices), fix=fix)


def _unknown_setting(name: str, value: Any) -> Problem:
    close = nearest(name, tuple(SETTINGS))
    fix = f"write {SETTING_PREFIX}{close}" if close else "remove it, or see `trn settings` for what each setting means"
    return Problem(key=name, got=value, allowed=f"the settings {', '.join(SETTINGS)}", nearest=close, fix=fix)


def _missing(name: str) -> Problem:
    example = {"instance_type": "trn1.32xlarge", "region": "us-west-2"}[name]
    return Problem(
        key=name,
        got=None,
        allowed=SETTINGS[name].form.allowed,
        fix=f'add "{SETTING_PREFIX}{name}": "{example}" to the context of cdk.json, or give it with -c',
    )


def _default(known: Field[Any]) -> Any:
    if known.default_factory is not MISSING:
        return known.default_factory()
    return "" if known.default is MISSING else known.default
