"""`trn permissions`: least-privilege IAM policies for users of the plan, and for CloudFormation."""

import json
import re

import click

from trainium_cli.invocation import Invocation, pass_invocation, plan_options
from trainium_cli.terminal import console, echo, print_json
from trainium_core.permissions.roles import CLOUDFORMATION, commands, policies, role_scope, roles

_MEANINGS = {
    "read-only": "Reads only",
    "operate": "Reads, works with jobs, nodes and the cache, puts the cluster to sleep, wakes and destroys it",
    "deploy": "Reads, deploys and extends with the roles of `cdk bootstrap`, requests quotas",
    CLOUDFORMATION: "CloudFormation's role: `cdk bootstrap --cloudformation-execution-policies`",
}


@click.command()
@click.argument("role", required=False, type=click.Choice(tuple(roles())))
@click.option(
    "--account", metavar="ID", default="*", show_default="any", help="Account ID in the ARNs, such as 123456789012."
)
@plan_options
@pass_invocation
def permissions(invocation: Invocation, role: str | None, account: str) -> None:
    """Show the IAM policies that people and CloudFormation need.

    Default: the policies of all sets. Works offline. Where CloudFormation names resources after the plan's stacks,
    permissions are limited to these resources; docs/reference/permissions.md describes how they were tested.
    """
    if not re.fullmatch(r"[0-9]{12}|\*", account):
        raise click.UsageError(f"--account: got {account!r}; allowed: 12 digits, or * for any account")
    scope = role_scope(invocation.plan(), account=account, qualifier=invocation.bootstrap_qualifier)
    chosen = [role] if role else list(roles())
    documents = {name: [dict(policy) for policy in policies(name, scope)] for name in chosen}
    if invocation.as_json:
        print_json(documents)
        return
    for name, found in documents.items():
        console().print(f"{name}: {_MEANINGS[name]}")
        if name != CLOUDFORMATION:
            console().print(f"  Commands: {'; '.join(commands(name))}")
        for number, document in enumerate(found, 1):
            echo(f"\n# {name}, policy {number} of {len(found)}" if len(found) > 1 else "")
            echo(json.dumps(document, indent=2))
        echo()
