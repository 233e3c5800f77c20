"""`trn preflight`: whether the plan can be deployed to the account whose credentials are found."""

from dataclasses import asdict
from pathlib import Path

import click
from rich.text import Text

from trainium_cli.exit_codes import ExitCode
from trainium_cli.plan_options import plan_options, read_plan
from trainium_cli.terminal import console, print_json, table
from trainium_core.adapters.aws_account import AwsAccount
from trainium_core.preflight import Finding, verdict
from trainium_core.preflight import preflight as ask_account

_EXIT_CODES = {
    "ready": ExitCode.OK,
    "not ready": ExitCode.NOT_READY,
    "could not tell": ExitCode.COULD_NOT_TELL,
}
_STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red", "unknown": "magenta"}


@click.command()
@plan_options
def preflight(overrides: tuple[str, ...], cdk_json: Path | None, as_json: bool) -> None:
    """Ask the AWS account whether the plan can be deployed.

    Only looks, with the credentials that boto3 finds. Says nothing about free capacity.
    """
    plan = read_plan(cdk_json, overrides, as_json=as_json)
    findings = ask_account(plan, AwsAccount(plan.region))
    outcome = verdict(findings)
    if as_json:
        print_json({"verdict": outcome, "findings": [asdict(finding) for finding in findings]})
    else:
        _show(findings)
        counts = ", ".join(f"{n} {kind}" for kind in _STYLES if (n := sum(f.outcome == kind for f in findings)))
        console().print(f"\n{outcome}: {plan.nodes} x {plan.instance_type} in {plan.region} ({counts})", style="bold")
    raise click.exceptions.Exit(_EXIT_CODES[outcome])


def _show(findings: tuple[Finding, ...]) -> None:
    rows = [
        (
            finding.check,
            Text(finding.outcome, _STYLES[finding.outcome]),
            finding.found + (f"\n-> {finding.fix}" if finding.fix else ""),
        )
        for finding in findings
    ]
    console().print(table(["Check", "Outcome", "Found"], rows, wrapping=["Found"]))
