"""`trn`: what a plan needs, what stands in its way, and an AWS on this machine to try it on."""

import click

from trainium_cli.exit_codes import exit_code_table
from trainium_cli.lazy_group import LazyCommand, LazyGroup

COMMANDS = {
    "types": LazyCommand(
        module="trainium_cli.types_command", attribute="types", summary="Show the instance types a plan can name."
    ),
    "settings": LazyCommand(
        module="trainium_cli.settings_command", attribute="settings", summary="Show every setting of a plan."
    ),
    "plan": LazyCommand(
        module="trainium_cli.plan_command", attribute="plan", summary="Check the plan and show what follows from it."
    ),
    "preflight": LazyCommand(
        module="trainium_cli.preflight_command",
        attribute="preflight",
        summary="Ask the AWS account whether the plan can be deployed.",
    ),
    "local": LazyCommand(
        module="trainium_cli.local", attribute="local", summary="Run an AWS on this machine, and commands against it."
    ),
}


@click.group(
    "trn",
    cls=LazyGroup,
    lazy_commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"\b\nExit codes:\n{exit_code_table()}",
)
@click.version_option(package_name="trainium-cdk", prog_name="trn")
def trn() -> None:
    """From an empty AWS account to a proven AWS Trainium cluster.

    The plan is read from the settings trn:... in the context of cdk.json, as `cdk deploy` reads it.
    """


def main() -> None:
    trn(prog_name="trn")
