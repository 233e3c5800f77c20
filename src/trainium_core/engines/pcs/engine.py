"""Slurm on AWS PCS: queues, priorities and retries, on nodes that start for jobs and end when idle."""

from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.resource import Charge, Resource
from trainium_core.engines.engine import Engine, ServiceNodes
from trainium_core.engines.pcs.aws_nodes import node_group, running_nodes
from trainium_core.engines.pcs.aws_workloads import WORKLOADS
from trainium_core.engines.pcs.check import check_pcs
from trainium_core.engines.pcs.costs import cost_items, cost_notes
from trainium_core.engines.pcs.deployed_groups import RESOURCE_TYPE, fleets_in
from trainium_core.engines.pcs.warnings import pcs_warnings


@Listing(
    "AWS PCS cluster", "AWS::PCS::Cluster", arn_type="pcs:cluster", permission="pcs:ListClusters", entries="clusters[]"
)
def _clusters(entry: Entry, _location: Location) -> Resource:
    return Resource(
        name=entry["name"],
        arn=entry["arn"],
        ids=frozenset([entry["arn"], entry["id"]]),
        state=entry["status"],
        created=entry.get("createdAt"),
        charge=Charge(unpriced="its Slurm controller"),
    )


PCS = Engine(
    key="pcs",
    cost_items=cost_items,
    cost_notes=cost_notes,
    warnings=pcs_warnings,
    checks={"pcs": check_pcs},
    shared_checks=("quota", "offering", "reservation", "placement", "lustre", "efs"),
    listings=(_clusters,),
    workloads=WORKLOADS,
    service_nodes=ServiceNodes(
        resource_type=RESOURCE_TYPE,
        called="compute node group",
        running=running_nodes,
        fleets=fleets_in,
        group=node_group,
    ),
    can_sleep=False,
)
