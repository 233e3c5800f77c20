"""`trn list`: every cluster of the account."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path

import click

from trainium_cli.cluster.list_report import clusters_table, lists_as_json
from trainium_cli.cluster_selection import configured_region, settings_of_a_plan
from trainium_cli.completion_values import complete_region
from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan_options import IRRELEVANT_LATER, plan_options, read_plan
from trainium_cli.terminal import console, print_json
from trainium_cli.waiting import waiting
from trainium_core.catalog.catalog import Catalog, builtin_catalog
from trainium_core.clusters.absence import with_absences
from trainium_core.clusters.aws_absence import AwsAbsences
from trainium_core.clusters.aws_account import AwsClustersAccount
from trainium_core.clusters.cluster import ClusterList, clusters_in
from trainium_core.prices.price import PriceTable, no_prices
from trainium_runtime.aws_service import Clients
from trainium_runtime.errors import UnavailableError

_THREADS = 8
"""Regions at once; each has few questions."""


@click.command("list")
@plan_options
@click.option(
    "--region", metavar="REGION", shell_complete=complete_region, help="The region to look in. Default: the plan's."
)
@click.option("--all-regions", is_flag=True, help="Look in every region with Trainium that the account may use.")
def list_clusters(
    overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool, region: str | None, all_regions: bool
) -> None:
    """Show every cluster of the account.

    In the plan's region, else that of the AWS configuration, whoever deployed them: by the tag trn:cluster of stacks,
    of what they make, and of instances. Dollars by the hour are those of the nodes alone, by list price; `trn cost` has
    the rest.

    Exit code 0: all could be read. 3: not all.
    """
    if region and all_regions:
        raise click.UsageError("give --region or --all-regions, not both")
    plan = None
    if settings_of_a_plan(cdk_json, overrides):
        plan = read_plan(cdk_json, overrides, as_json=as_json, ignoring=IRRELEVANT_LATER)
    clients = Clients()
    account = AwsClustersAccount(region or (plan.region if plan else configured_region()), clients=clients)
    try:
        with waiting("Asking AWS for the account ..."):
            identity = account.identity()
            regions = (
                _regions(plan.catalog if plan else builtin_catalog(), account) if all_regions else [account.region]
            )
    except UnavailableError as error:
        if as_json:
            print_json({"error": str(error)})
        click.echo(f"Could not tell: {error}", err=True)
        raise click.exceptions.Exit(ExitCode.UNKNOWN) from error
    lists = _clusters_in(plan.prices if plan else no_prices(), regions, clients)
    not_read = [reason for one in lists for reason in one.not_read]
    if as_json:
        print_json({"account": identity.account, **lists_as_json(lists)})
    elif all(one.not_read and not one.clusters for one in lists):
        click.echo(f"Could not tell: {'; '.join(dict.fromkeys(not_read))}", err=True)
    else:
        _show(lists, plan.cluster_name if plan else "", identity.account)
    raise click.exceptions.Exit(ExitCode.UNKNOWN if not_read else ExitCode.OK)


def _regions(catalog: Catalog, account: AwsClustersAccount) -> Sequence[str]:
    enabled = account.enabled_regions()
    return [region for region in catalog.regions if region in enabled]


def _clusters_in(prices: PriceTable, regions: Sequence[str], clients: Clients) -> Sequence[ClusterList]:
    """One list for each region, in their order; what could not be read is named in it."""

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


def _show(lists: Sequence[ClusterList], own: str, account: str) -> None:
    out = console()
    clusters = [cluster for one in lists for cluster in one.clusters]
    where = lists[0].region if len(lists) == 1 else f"{len(lists)} regions"
    if clusters:
        out.print(clusters_table(clusters, own=own, now=datetime.now(UTC)))
        for name, absence in (item for one in lists for item in one.absences.items()):
            out.print(f"{name} has no nodes: {absence}")
        out.print("\nDollars: the nodes alone, by list price; a Capacity Block is paid before.")
    not_read = [(one.region, reason) for one in lists for reason in one.not_read]
    for reason in dict.fromkeys(reason for _, reason in not_read):
        regions = ", ".join(region for region, why in not_read if why == reason)
        out.print(f"Could not be read in {regions}: {reason}", style="magenta")
    for reason in dict.fromkeys(reason for one in lists for reason in one.prices_unavailable):
        out.print(f"AWS's prices are unavailable: {reason}")
    number = {0: "no cluster", 1: "1 cluster"}.get(len(clusters), f"{len(clusters)} clusters")
    known = " that could be read" if not_read else ""
    out.print(f"{number} of account {account} in {where}{known}", style="bold")
