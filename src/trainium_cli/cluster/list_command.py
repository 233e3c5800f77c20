"""`trn list`: the clusters of the account in one region or all."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import click
from rich.text import Text

from trainium_cli.cluster_choice import configured_region
from trainium_cli.completion_values import complete_region
from trainium_cli.exit_codes import ExitCode
from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.layout import Table
from trainium_cli.terminal import console, print_json, say, table
from trainium_cli.waiting import waiting
from trainium_core.catalog.catalog import Catalog, builtin_catalog
from trainium_core.clusters.absence import with_absences
from trainium_core.clusters.aws_account import AwsAbsences, AwsClustersAccount
from trainium_core.clusters.cluster import Absence, Cluster, ClusterList, clusters_in
from trainium_core.plan.pilot_end import minute_text
from trainium_core.prices.price import PriceTable
from trainium_core.problems import PlanError
from trainium_core.stacks.aws_stacks import AwsStacks
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import SIGN_IN_OR_ENABLE, DeniedError, UnavailableError
from trainium_runtime.pilot_end import utc_text

_THREADS = 8
"""The number of regions that are read at the same time. Each needs few requests."""


@click.command("list")
@click.option(
    "--region", metavar="REGION", shell_complete=complete_region, help="Region to search. Default: see above."
)
@click.option("--all-regions", is_flag=True, help="Search every enabled region that offers a type of `trn types`.")
@plan_options
@pass_invocation
def list_clusters(invocation: Invocation, region: str | None, all_regions: bool) -> ExitCode:
    """Show the clusters of the account in one region or all.

    Finds clusters of any app by the records of their stacks, and by the tag trn:cluster of stacks, their resources and
    instances. Names stacks without a record. The region is that of --region, else of the plan, else of the AWS
    configuration. If the plan has trn:project_id, the clusters of its project in all other regions are shown too,
    unless --region is passed. Dollars per hour are for the instances, without prepaid Capacity Blocks; `trn cost`
    shows all costs.

    Exit code 0: everything was read, except possibly prices, and regions to search only for clusters of the project
    that your permissions deny. 3: something else could not be read.
    """
    if region and all_regions:
        raise click.UsageError("pass --region or --all-regions, not both")
    plan = None
    with suppress(PlanError):
        plan = invocation.plan() if invocation.has_plan else None
    clients = invocation.clients
    account = AwsClustersAccount(region or configured_region(invocation), clients=clients)
    with waiting("Asking AWS for the account ..."):
        identity = account.identity()
        catalog = plan.catalog if plan else builtin_catalog()
        regions = _regions(catalog, account) if all_regions else [account.region]
    prices: PriceTable = plan.prices if plan else {}
    project = plan.project_id if plan else None
    lists = [*_clusters_in(prices, regions, clients)]
    denied = list[str]()
    if project and not (region or all_regions):
        others = [each for each in catalog.regions if each not in regions]
        more, denied = _project_clusters(project, prices, others, clients)
        lists += more
    not_read = [reason for listed in lists for reason in listed.not_read]
    if invocation.as_json:
        print_json({"account": identity.account, **lists_as_json(lists)})
    elif lists and all(listed.not_read and not listed.clusters for listed in lists):
        raise UnavailableError("; ".join(dict.fromkeys(not_read)))
    else:
        _show(lists, plan.cluster_name if plan else "", identity.account, project)
        if denied:
            say(f"Not searched for clusters of this project, because permissions are missing: {', '.join(denied)}.")
    return ExitCode.UNKNOWN if not_read else ExitCode.OK


def _regions(catalog: Catalog, account: AwsClustersAccount) -> Sequence[str]:
    enabled = account.enabled_regions()
    return [region for region in catalog.regions if region in enabled]


def _clusters_in(prices: PriceTable, regions: Sequence[str], clients: Clients) -> Sequence[ClusterList]:
    """One list for each region, in the order of `regions`, with the reasons for what could not be read."""

    def read(region: str) -> ClusterList:
        try:
            account = AwsAbsences(region, clients=clients)
            return with_absences(clusters_in(region, account, prices=prices), account, datetime.now(UTC))
        except UnavailableError as error:
            return ClusterList(region=region, clusters=(), not_read=(str(error),))

    message = f"Looking for clusters in {', '.join(regions) if len(regions) == 1 else f'{len(regions)} regions'}"
    with waiting(message) as change, ThreadPoolExecutor(_THREADS) as threads:
        futures = [threads.submit(read, region) for region in regions]
        for done, _ in enumerate(as_completed(futures), start=1):
            change(f"{message}: {done} of {len(regions)} answered")
        return [future.result() for future in futures]


def _project_clusters(
    project: str, prices: PriceTable, regions: Sequence[str], clients: Clients
) -> tuple[Sequence[ClusterList], Sequence[str]]:
    """The clusters of a project in regions that have any, and the regions that permissions deny."""
    found, denied, not_read = list[str](), list[str](), list[ClusterList]()

    def deployed(region: str) -> bool:
        try:
            return bool(AwsStacks(region, clients=clients).project_stacks(project))
        except DeniedError:
            denied.append(region)
        except UnavailableError as error:
            if error.remedy != SIGN_IN_OR_ENABLE:  # other regions accepted the credentials: this one is not enabled
                not_read.append(ClusterList(region=region, clusters=(), not_read=(str(error),)))
        return False

    with waiting("Looking for clusters of this project in other regions ..."), ThreadPoolExecutor(_THREADS) as threads:
        found = [region for region, is_there in zip(regions, threads.map(deployed, regions), strict=True) if is_there]
    lists = [
        replace(listed, clusters=tuple(cluster for cluster in listed.clusters if cluster.belongs_to(project)))
        for listed in (_clusters_in(prices, found, clients) if found else ())
    ]
    return [*lists, *not_read], sorted(denied)


def _show(lists: Sequence[ClusterList], own: str, account: str, project: str | None) -> None:
    out = console()
    clusters = [cluster for listed in lists for cluster in listed.clusters]
    where = lists[0].region if len(lists) == 1 else f"{len(lists)} regions"
    if clusters:
        out.print(clusters_table(clusters, own=own, now=datetime.now(UTC)))
        for name, absence in (item for listed in lists for item in listed.absences.items()):
            out.print(f"{name} has no nodes: {absence}")
        for cluster in clusters:
            for stack in cluster.stacks:
                if not stack.has_record:
                    out.print(f"{stack.name} has no record of {cluster.name}: it was found by the tag trn:cluster.")
        deployed = [cluster.name for cluster in clusters if cluster.belongs_to(project)]
        if deployed:
            out.print(f"Deployed by this project: {', '.join(deployed)}.")
        out.print("\nDollars: instances only; a Capacity Block is prepaid.")
    not_read = [(listed.region, reason) for listed in lists for reason in listed.not_read]
    for reason in dict.fromkeys(reason for _, reason in not_read):
        regions = ", ".join(region for region, why in not_read if why == reason)
        out.print(f"Could not be read in {regions}: {reason}", style="magenta")
    for reason in dict.fromkeys(reason for listed in lists for reason in listed.prices_unavailable):
        out.print(f"AWS prices are unavailable: {reason}")
    number = {0: "no cluster", 1: "1 cluster"}.get(len(clusters), f"{len(clusters)} clusters")
    known = "; not everything could be read" if not_read else ""
    out.print(f"{number} of account {account} in {where}{known}", style="bold")


_STYLE = {"running": "green", "asleep": "dim", "no nodes": "dim"}
_COLUMNS = ("Cluster", "Region", "State", "Nodes", "Per hour", "Ends", "Stacks")


def clusters_table(clusters: Sequence[Cluster], *, own: str, now: datetime) -> Table:
    """One row for each cluster. The row of the plan's cluster, `own`, is highlighted."""
    rows = [
        (
            Text(cluster.name, style="bold" if cluster.name == own else ""),
            cluster.region,
            Text(cluster.state, style=_STYLE.get(cluster.state, "yellow")),
            _instances(cluster) or "none",
            str(cluster.per_hour),
            _end(cluster, now),
            ", ".join(stack.name for stack in cluster.stacks) or "none",
        )
        for cluster in clusters
    ]
    return table(_COLUMNS, rows, wrapping=("Per hour", "Stacks"))


def lists_as_json(lists: Sequence[ClusterList]) -> dict[str, Any]:
    """The lists. `usd_per_hour` is the sum of the known prices; `unknown_prices` counts the others."""
    return {
        "regions": [listed.region for listed in lists],
        "clusters": [
            _as_json(cluster, listed.absences.get(cluster.name)) for listed in lists for cluster in listed.clusters
        ],
        "not_read": [{"region": listed.region, "reason": reason} for listed in lists for reason in listed.not_read],
    }


def _instances(cluster: Cluster) -> str:
    counts = [*cluster.node_counts.items(), *cluster.login_counts.items()]
    return ", ".join(f"{count} x {kind}" for kind, count in counts)


def _as_json(cluster: Cluster, absence: Absence | None) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "region": cluster.region,
        "state": cluster.state,
        "project_id": next((stack.project for stack in cluster.stacks if stack.project), None),
        "stacks": [
            {"name": stack.name, "engine": stack.engine, "status": stack.status, "record": stack.has_record}
            for stack in cluster.stacks
        ],
        "nodes": [
            {
                "instance_id": node.instance_id,
                "instance_type": node.instance_type,
                "state": node.state,
                "purchase_option": node.product,
            }
            for node in cluster.nodes
        ],
        "absence": {"why": absence.why, "remedy": absence.remedy} if absence else None,
        "usd_per_hour": cluster.per_hour.usd,
        "unknown_prices": cluster.per_hour.unknown,
        "ends": utc_text(cluster.ends) if cluster.ends else None,
    }


def _end(cluster: Cluster, now: datetime) -> str:
    if cluster.ends is None:
        return "no end"
    moment = minute_text(cluster.ends)
    return f"ended {moment}" if cluster.ends <= now else moment
