"""Every setting a plan has: its name, form and meaning. Plan, command line and documentation all follow this table."""

import re
from collections.abc import Mapping
from typing import Literal, get_args

from trainium_core.catalog import builtin_catalog
from trainium_core.catalog_file import ZONE_ID
from trainium_core.facts import facts
from trainium_core.file_system_settings import FILE_SYSTEM_SETTINGS
from trainium_core.forms import (
    Choice,
    FilePath,
    Names,
    NetworkBlock,
    Pattern,
    TagMap,
    TextFile,
    WholeNumber,
)
from trainium_core.node_checks import NODE_CHECKS
from trainium_core.pilot_settings import PILOT_SETTINGS
from trainium_core.setting import BUCKET_NAME, HEX_ID, Setting, resource_id
from trainium_core.stack_settings import STACK_SETTINGS

CAPACITY = ("on-demand", "spot", "capacity-block", "reservation")
Egress = Literal["vpc-endpoints", "nat-gateway", "none"]
EGRESS: tuple[Egress, ...] = get_args(Egress)
AT_DESTROY = ("destroy", "retain")
SWITCH = ("on", "off")
VERIFICATION = ("enforce", "observe")
NEURON_SOFTWARE = ("image", "install")
CARD_INTERFACE_TYPES = ("efa", "efa-only")


def _settings() -> Mapping[str, Setting]:
    volume, subnet, resource = facts()["gp3"], facts()["subnet"], facts()["custom_resource"]
    speed = facts()["root_volume_speed"]
    return {
        "instance_type": Setting(
            form=Pattern(r"[^\s]+", "an instance type of the catalogue, see `trn types`"),
            default=None,
            meaning="EC2 instance type of every node",
        ),
        "region": Setting(
            form=Pattern(
                r"[a-z]{2}(-[a-z]+)+-[0-9]", "an AWS region, such as us-west-2", choices=builtin_catalog().regions
            ),
            default=None,
            meaning="AWS region to deploy to",
        ),
        "nodes": Setting(form=WholeNumber(1), default="1", meaning="number of instances"),
        "capacity": Setting(form=Choice(CAPACITY), default="on-demand", meaning="how the instances are bought"),
        "reservation_id": Setting(
            form=resource_id("cr", "a Capacity Block or Capacity Reservation"),
            default="none",
            meaning="what capacity-block and reservation launch into",
        ),
        "availability_zone_id": Setting(
            form=Pattern(ZONE_ID, "an Availability Zone id, such as usw2-az4"),
            default="the first zone of the region that offers the type",
            meaning="zone of the nodes, by id: names differ between accounts",
        ),
        "ami": Setting(
            form=Pattern(f"/[A-Za-z0-9_./-]+|ami-{HEX_ID}", "an SSM parameter name that begins with /, or an AMI id"),
            default=f"the SSM parameter {facts()['image']['ssm_parameter']}",
            meaning="image of the nodes",
        ),
        "ami_parameter": Setting(
            form=Pattern("/[A-Za-z0-9_./-]+", "the name of an SSM parameter, which begins with /"),
            default="none",
            meaning="parameter that the AMI id in trn:ami was taken from; preflight tells when it has moved on",
        ),
        "cluster_name": Setting(
            form=Pattern(r"[a-z][a-z0-9-]{0,31}", "1 to 32 lower-case letters, digits and hyphens, a letter first"),
            default="trn-pilot",
            meaning="value of the tag trn:cluster on everything",
        ),
        "vpc_id": Setting(
            form=resource_id("vpc", "a VPC"), default="a new VPC", meaning="VPC of your own to put the nodes in"
        ),
        "subnet_id": Setting(
            form=resource_id("subnet", "a subnet"),
            default="a new private subnet",
            meaning="subnet of your own VPC, in a zone that offers the type",
        ),
        "route_table_id": Setting(
            form=resource_id("rtb", "a route table"),
            default="none: your subnet must reach S3 already",
            meaning="route table of your own subnet; an S3 gateway endpoint is added to it",
        ),
        "vpc_cidr": Setting(
            form=NetworkBlock(longest_prefix=24, shortest_prefix=subnet["largest_prefix"]),
            default="10.42.0.0/16",
            meaning="addresses of the new VPC",
        ),
        "egress": Setting(
            form=Choice(EGRESS),
            default="vpc-endpoints (sessions and S3 only, no internet)",
            meaning="how nodes in the new VPC reach the outside; none leaves S3 only, without sessions",
        ),
        "secondary_interface_type": Setting(
            form=Choice(CARD_INTERFACE_TYPES),
            default="efa",
            meaning="interface on network cards after the first; efa-only uses no IP address",
        ),
        "placement_group": Setting(
            form=Pattern(r"[\x21-\x7e ]{1,255}", "the name of an existing cluster placement group"),
            default="a new one for EFA types on demand or spot, none with capacity-block or reservation",
            meaning="placement group of your own, such as the one a reservation was made in",
        ),
        "root_volume_gib": Setting(
            form=WholeNumber(volume["smallest_gib"], volume["largest_gib"]),
            default=str(facts()["root_volume"]["default_gib"]),
            meaning="size of the encrypted gp3 root volume in GiB",
        ),
        "root_volume_throughput": Setting(
            form=WholeNumber(facts()["gp3_throughput"]["included"], facts()["gp3_throughput"]["largest"]),
            default=str(speed["default_mib_per_second"]),
            meaning="throughput of the root volume in MiB/s; what is above 125 is billed",
        ),
        "root_volume_initialization": Setting(
            form=WholeNumber(speed["slowest_initialization"], speed["fastest_initialization"]),
            default="what EBS gives, which varies",
            meaning="MiB/s at which the image's blocks come to a new root volume; billed per GiB at every launch",
        ),
        "root_device_name": Setting(
            form=Pattern(r"/dev/[a-z0-9]+", "a device name, such as /dev/sda1 (Ubuntu) or /dev/xvda (Amazon Linux)"),
            default=facts()["image"]["root_device_name"],
            meaning="root device of the image",
        ),
        "logical_neuroncore_config": Setting(
            form=WholeNumber(1),
            default="the type's own default (2 on Trainium2)",
            meaning="physical NeuronCores per logical core (LNC)",
        ),
        "cache_bucket": Setting(
            form=Pattern(BUCKET_NAME, "the name of an existing S3 bucket in the region"),
            default="a new bucket",
            meaning="bucket of your own for the compile cache, such as one that an earlier cluster left",
        ),
        "cache_at_destroy": Setting(
            form=Choice(AT_DESTROY), default="destroy", meaning="what happens to the new cache bucket at destroy"
        ),
        "cache_expiration_days": Setting(
            form=WholeNumber(1, 3650),
            default="90",
            meaning="days after which a compiled graph expires from the new bucket",
        ),
        "node_timeout_minutes": Setting(
            form=WholeNumber(1, resource["timeout_minutes"] - 5),
            default="50",
            meaning="minutes the deployment waits for every node to prove itself, replacements included",
        ),
        "neuron_software": Setting(
            form=Choice(NEURON_SOFTWARE),
            default="image (a Neuron DLAMI has everything; nothing is downloaded)",
            meaning="where driver, runtime and tools are from; install is for a bare Ubuntu 24.04 or Amazon Linux 2023",
        ),
        "suppress_checks": Setting(
            form=Names(tuple(NODE_CHECKS)),
            default="none",
            meaning="checks of a node that are made and shown, but do not fail it",
        ),
        "verification": Setting(
            form=Choice(VERIFICATION),
            default="enforce",
            meaning="observe: only missing devices, missing cores and wrong numbers fail a node, all else is a warning",
        ),
        "node_recovery": Setting(
            form=Choice(SWITCH), default="on", meaning="whether a node that fails is replaced, at deployment and after"
        ),
        "node_replacements": Setting(
            form=WholeNumber(0, 100),
            default="2",
            meaning="failed nodes that are replaced within 24 hours; the next one fails the deployment, and stays",
        ),
        "internode_ssh": Setting(
            form=Choice(SWITCH),
            default="off",
            meaning="whether nodes may log on to each other over SSH, for MPI and nccom-test across nodes",
        ),
        **FILE_SYSTEM_SETTINGS,
        **PILOT_SETTINGS,
        "quota_gate": Setting(
            form=Choice(SWITCH),
            default="on",
            meaning="whether a deployment asks for the quota before any instance, and fails if there is no room",
        ),
        "setup_script": Setting(
            form=TextFile("a bash script, by its path from the folder of cdk.json"),
            default="none",
            meaning="run on every node after its devices are verified; a failure fails the node",
        ),
        "catalog": Setting(
            form=FilePath("a TOML file in the form of the built-in catalogue, by its path from the folder of cdk.json"),
            default="the built-in catalogue",
            meaning="instance types of your own, laid over the built-in ones",
        ),
        "prices": Setting(
            form=FilePath("a CSV file in the form of the built-in snapshot, by its path from the folder of cdk.json"),
            default="what AWS says, else the snapshot",
            meaning="prices of your own for `trn estimate`, such as negotiated ones or a Capacity Block you bought",
        ),
        "tags": Setting(form=TagMap(), default="none", meaning="tags on every resource, besides trn:cluster"),
    }


SETTINGS: Mapping[str, Setting] = {**_settings(), **STACK_SETTINGS}


def zone_name_hint(text: str) -> bool:
    """Whether the text is a zone *name* such as us-west-2a, the common mistake for a zone id."""
    return re.fullmatch(r"[a-z]{2}(-[a-z]+)+-[0-9][a-z]", text) is not None
