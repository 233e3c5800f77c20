"""The values of a plan: its settings and values derived from them, without validation."""

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, get_args

from trainium_core.catalog.catalog import Catalog, builtin_catalog
from trainium_core.catalog.file import ZONE_ID
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.catalog.neuron_software import Framework, default_image, parameter_framework
from trainium_core.facts import facts
from trainium_core.naming import CONSTRUCT_IDS, DEFAULT_CLUSTER_NAME, stack_names
from trainium_core.plan.settings.cache import CacheSettings
from trainium_core.plan.settings.eks import EksSettings
from trainium_core.plan.settings.file_systems import FileSystemSettings
from trainium_core.plan.settings.jobs import JobAccess
from trainium_core.plan.settings.network import NetworkSettings
from trainium_core.plan.settings.node import CloudWatchMetrics, Node, effective_metrics
from trainium_core.plan.settings.pcs import PcsSettings
from trainium_core.plan.settings.pilot import PilotSettings
from trainium_core.plan.settings.sagemaker import SageMakerSettings
from trainium_core.prices.price import Price, PricedItem, PriceTable
from trainium_core.setting_schema.forms import Choice, FilePath, ListOf, Pattern, Switch, TagMap, WholeNumber
from trainium_core.setting_schema.setting import HEX_ID, resource_id, section, setting

CapacityKind = Literal["on-demand", "spot", "capacity-block", "reservation"]
CAPACITY: tuple[CapacityKind, ...] = get_args(CapacityKind)
STACKS = tuple(CONSTRUCT_IDS)

_IMAGE = facts()["image"]
_SPEED = facts()["root_volume_speed"]


@section
class PlanValues:
    """The settings by section, in the order in which they are shown.

    In cdk.json, `setup_script`, `catalog` and `prices` are paths. Here they are the text of the script and the parsed
    files.
    """

    instance_type: str = setting(
        "instance_type",
        Pattern(r"[^\s]+", "an instance type of the catalogue, see `trn types`"),
        meaning="EC2 instance type of every node",
        replaces_nodes=True,
    )
    region: str = setting(
        "region",
        Pattern(r"[a-z]{2}(-[a-z]+)+-[0-9]", "an AWS region, such as us-west-2", choices=builtin_catalog().regions),
        meaning="AWS region to deploy to",
    )
    nodes: int = setting("nodes", WholeNumber(1), default=1, meaning="number of instances")
    cluster_name: str = setting(
        "cluster_name",
        Pattern(
            r"(?=.{1,32}$)[a-z][a-z0-9]*(-[a-z0-9]+)*",
            "1 to 32 lower-case letters, digits and single hyphens, a letter first and no hyphen last",
        ),
        default=DEFAULT_CLUSTER_NAME,
        meaning="name of the cluster: the value of the tag trn:cluster and, unless it is "
        f"{DEFAULT_CLUSTER_NAME}, the prefix of the stack names. A deployment with the same name changes the same "
        "cluster",
    )
    capacity: CapacityKind = setting(
        "capacity",
        Choice(CAPACITY),
        default="on-demand",
        meaning="purchase option of the instances",
        replaces_nodes=True,
    )
    reservation_id: str | None = setting(
        "reservation_id",
        resource_id("cr", "a Capacity Block or Capacity Reservation"),
        default=None,
        meaning="Capacity Block or reservation to launch into",
        replaces_nodes=True,
    )
    availability_zone_id: str | None = setting(
        "availability_zone_id",
        Pattern(ZONE_ID, "an Availability Zone ID, such as usw2-az4"),
        default=None,
        default_text="the first zone of the region that offers the type; with trn:subnet_id, the zone of the subnet",
        meaning="zone of the nodes, by ID: names differ between accounts",
    )
    stacks: tuple[str, ...] = setting(
        "stacks",
        ListOf(Choice(STACKS), f"names, separated by commas: {', '.join(STACKS)}", least=1),
        default=("cluster",),
        default_text="cluster",
        meaning=f"stacks of the app: {', '.join(CONSTRUCT_IDS.values())}",
    )
    setup_script: str | None = setting(
        "setup_script",
        FilePath("a bash script, by its path from the folder of cdk.json"),
        default=None,
        meaning="bash script that every node runs after its devices are verified; a failure fails the node",
        replaces_nodes=True,
    )
    ami: str | None = setting(
        "ami",
        Pattern(f"/[A-Za-z0-9_./-]+|ami-{HEX_ID}", "an SSM parameter name that begins with /, or an AMI ID"),
        default=None,
        default_text=f"the SSM parameter {_IMAGE['ssm_parameter']}; on types with GPUs "
        f"{facts()['gpu_images']['ssm_parameter']}",
        meaning="machine image of the nodes",
    )
    root_volume_gib: int = setting(
        "root_volume_gib",
        WholeNumber(facts()["smallest_root_volume"]["gib"], facts()["gp3"]["largest_gib"]),
        default=facts()["root_volume"]["default_gib"],
        meaning="size of the encrypted gp3 root volume, in GiB",
        replaces_nodes=True,
    )
    root_volume_throughput: int = setting(
        "root_volume_throughput",
        WholeNumber(facts()["gp3_throughput"]["included"], facts()["gp3_throughput"]["largest"]),
        default=_SPEED["default_mib_per_second"],
        meaning="throughput of the root volume in MiB/s; throughput above 125 is billed",
        replaces_nodes=True,
    )
    tags: Mapping[str, str] = setting(
        "tags",
        TagMap(),
        default_factory=dict[str, str],
        default_text="none",
        meaning="tags on resources, in addition to trn:cluster; placement groups, whose tags cannot change, do not get "
        "them",
    )
    prices: PriceTable = setting(
        "prices",
        FilePath("a CSV file in the form of this package's prices.csv, by its path from the folder of cdk.json"),
        default_factory=dict[PricedItem, Price],
        default_text="AWS's prices, else the snapshot of prices in this package",
        meaning="your prices, which take precedence over AWS's, such as negotiated prices or the price of a "
        "Capacity Block",
        repr=False,
    )
    catalog: Catalog = setting(
        "catalog",
        FilePath("a TOML file in the form of the built-in catalogue, by its path from the folder of cdk.json"),
        default_factory=builtin_catalog,
        default_text="the built-in catalogue",
        meaning="additional instance types, or changes to built-in ones",
        repr=False,
    )
    quota_check: bool = setting(
        "quota_check",
        Switch(),
        default=True,
        meaning="whether a deployment checks the quota before it launches instances, and fails if it is insufficient",
    )
    project_id: str | None = setting(
        "project_id",
        Pattern(r"[a-z0-9-]{1,64}", "1 to 64 lower-case letters, digits and hyphens"),
        default=None,
        meaning="ID of the project, which `trn init` writes: the value of the tag trn:project of the stacks. "
        "`trn deploy` and `trn destroy` refuse to change a cluster that another project deployed",
    )
    ami_parameter: str | None = setting(
        "ami_parameter",
        Pattern("/[A-Za-z0-9_./-]+", "the name of an SSM parameter, which begins with /"),
        default=None,
        meaning="SSM parameter from which `trn image pin` read the AMI ID in trn:ami; `trn preflight` reports if it "
        "names a newer image",
    )
    logical_neuroncore_config: int | None = setting(
        "logical_neuroncore_config",
        WholeNumber(1),
        default=None,
        default_text="the default of the type (2 on Trainium2)",
        meaning="physical NeuronCores per logical core (LNC)",
        replaces_nodes=True,
    )
    root_volume_initialization: int | None = setting(
        "root_volume_initialization",
        WholeNumber(_SPEED["slowest_initialization"], _SPEED["fastest_initialization"]),
        default=None,
        default_text="no guaranteed rate",
        meaning="MiB/s at which a new root volume loads the image's blocks; billed per GiB at every launch",
        replaces_nodes=True,
    )
    root_device_name: str = setting(
        "root_device_name",
        Pattern(r"/dev/[a-z0-9]+", "a device name, such as /dev/sda1 (Ubuntu) or /dev/xvda (Amazon Linux)"),
        default=_IMAGE["root_device_name"],
        meaning="root device of the image",
        replaces_nodes=True,
    )
    pilot: PilotSettings = field(default_factory=PilotSettings)
    jobs: JobAccess = field(default_factory=JobAccess)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    file_systems: FileSystemSettings = field(default_factory=FileSystemSettings)
    node: Node = field(default_factory=Node)
    sagemaker: SageMakerSettings = field(default_factory=SageMakerSettings)
    pcs: PcsSettings = field(default_factory=PcsSettings)
    eks: EksSettings = field(default_factory=EksSettings)

    @property
    def stack_names(self) -> Mapping[str, str]:
        """The CloudFormation names of the cluster's stacks, by their key in trn:stacks."""
        return stack_names(self.cluster_name)

    @property
    def type(self) -> InstanceType:
        """The catalogue's entry for the instance type."""
        return self.catalog[self.instance_type]

    @property
    def zone_id(self) -> str | None:
        """The Availability Zone ID of the nodes; None in an existing VPC if trn:availability_zone_id is not set."""
        if self.availability_zone_id or self.network.vpc_id:
            return self.availability_zone_id
        return self.type.zones[self.region][0]

    @property
    def needs_schedule(self) -> bool:
        """Whether the controller has a schedule: for an end, a spent budget, idle nodes or a Capacity Block."""
        pilot = self.pilot
        stops = pilot.ends is not None or pilot.stops_at_budget or pilot.idle_minutes is not None
        return stops or self.capacity == "capacity-block"

    @property
    def needs_topic(self) -> bool:
        """Whether a cluster has a topic of notices: for a schedule, a budget or the ends of jobs."""
        return self.needs_schedule or self.pilot.budget_usd is not None or self.pilot.job_notices

    @property
    def cloudwatch_metrics(self) -> CloudWatchMetrics:
        return effective_metrics(self.node.cloudwatch_metrics, self.nodes)

    @property
    def uses_efa(self) -> bool:
        return self.type.efa_interfaces > 0

    @property
    def creates_placement_group(self) -> bool:
        """Whether the plan creates a cluster placement group.

        A plan with a Capacity Block or a reservation does not: instances in a placement group match only reservations
        that were created in that group.
        """
        return self.uses_efa and self.capacity in ("on-demand", "spot") and self.network.placement_group is None

    @property
    def lnc(self) -> int:
        """Physical NeuronCores per logical NeuronCore (LNC)."""
        return self.logical_neuroncore_config or self.type.default_logical_neuroncore_config

    @property
    def neuron_cores_per_node(self) -> int:
        """Logical NeuronCores per node."""
        return self.type.logical_neuron_cores(self.lnc)

    @property
    def processes_per_node(self) -> int:
        """The processes of torchrun on each node: one for each GPU or logical NeuronCore."""
        return self.type.gpus or self.neuron_cores_per_node

    @property
    def image(self) -> str:
        """The ID of the image, or its SSM parameter."""
        return self.ami or default_image(self.type)

    @property
    def ami_is_parameter(self) -> bool:
        return self.ami is None or self.ami.startswith("/")

    @property
    def framework(self) -> Framework | None:
        """The framework that the image's parameter promises; None if it promises none or several."""
        return parameter_framework(self.image_parameter)

    @property
    def image_parameter(self) -> str | None:
        """The SSM parameter of the image, or the one from which a pinned image was read; None if there is none."""
        return self.image if self.ami_is_parameter else self.ami_parameter
