"""`trn quota sagemaker`: SageMaker's own quotas for the plan's instance type."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan_options import plan_options, read_plan
from trainium_cli.terminal import console, print_json, table
from trainium_core.preflight.aws_account import AwsAccount
from trainium_core.quotas.sagemaker import sagemaker_quota, sagemaker_quota_name, sagemaker_usages
from trainium_runtime.errors import UnavailableError
from trainium_runtime.quota import Quota


@click.command()
@click.option(
    "--usage",
    "usages",
    type=click.Choice(sagemaker_usages()),
    multiple=True,
    help="What the instances are for. Can be repeated. Default: every usage.",
)
@plan_options
def sagemaker(overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool, usages: tuple[str, ...]) -> None:
    """Show SageMaker's quotas for the plan's instance type, in instances.

    They are apart from those of EC2, and found by name. What runs already is not counted.
    Exit code 0: each limit is shown. 3: one could not be read.
    """
    plan = read_plan(cdk_json, overrides, as_json=as_json)
    account, wanted = AwsAccount(plan.region), usages or sagemaker_usages()

    def read(usage: str) -> Quota | UnavailableError | None:
        try:
            return sagemaker_quota(plan.instance_type, usage, account)
        except UnavailableError as error:
            return error

    with ThreadPoolExecutor() as threads:
        found = dict(zip(wanted, threads.map(read, wanted), strict=True))
    unanswered = [quota for quota in found.values() if isinstance(quota, UnavailableError)]
    names = {usage: sagemaker_quota_name(plan.instance_type, usage) for usage in wanted}
    if as_json:
        print_json({usage: {"name": names[usage], **_as_json(quota)} for usage, quota in found.items()})
    elif len(unanswered) == len(found) and unanswered[0].remedy:
        click.echo(f"Could not tell: {unanswered[0]}", err=True)
    else:
        rows = [[names[usage], *_as_row(quota)] for usage, quota in found.items()]
        console().print(
            table(["Quota", "Limit", "Code", "Note"], rows, right=["Limit"], wrapping=["Note"]),
        )
        console().print(f"\nInstances in {plan.region}; the plan has {plan.nodes}.")
    if not all(isinstance(quota, Quota) for quota in found.values()):
        raise click.exceptions.Exit(ExitCode.UNKNOWN)


def _as_row(quota: Quota | UnavailableError | None) -> list[str]:
    match quota:
        case Quota():
            return [f"{quota.limit:g}", quota.code, "AWS's default" if quota.is_default else ""]
        case None:
            return ["unknown", "", "SageMaker lists no such quota here"]
        case UnavailableError():
            return ["unknown", "", quota.reason]


def _as_json(quota: Quota | UnavailableError | None) -> dict[str, object]:
    if isinstance(quota, Quota):
        return {"limit": quota.limit, "code": quota.code, "is_default": quota.is_default}
    return {"limit": None, "reason": str(quota) if quota else "SageMaker lists no such quota here"}
