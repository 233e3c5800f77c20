"""`trn image`: the image of the plan's nodes, and pinning it in cdk.json."""

import json
from dataclasses import asdict
from difflib import unified_diff
from pathlib import Path

import click

from trainium_cli.exit_codes import CHECK_EXIT_CODES, CliError, ExitCode
from trainium_cli.invocation import Invocation, changed_file_option, pass_invocation, plan_options
from trainium_cli.lazy_group import CommandGroup, refuse_options_before_subcommand
from trainium_cli.terminal import console, echo, pairs, print_json, question, say
from trainium_cli.waiting import waiting
from trainium_core.aws.account import AwsAccount
from trainium_core.aws.images import Image
from trainium_core.catalog.neuron_release import neuron_release
from trainium_core.engines.ec2.checks.image_check import check_image
from trainium_core.plan import Plan
from trainium_core.plan.context import with_settings
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import UnavailableError


@click.group(cls=CommandGroup, invoke_without_command=True)
@plan_options
@pass_invocation
@click.pass_context
def image(ctx: click.Context, invocation: Invocation) -> ExitCode | None:
    """Show the image of the plan's nodes, and pin it.

    Exit codes are those of `trn preflight` for the image check.
    """
    if ctx.invoked_subcommand:
        refuse_options_before_subcommand(ctx)
        return None
    plan = invocation.plan()
    with waiting(f"Asking AWS in {plan.region} ..."):
        found, result = _image_and_result(plan)
    if invocation.as_json:
        print_json({"parameter": plan.image_parameter, "image": asdict(found) if found else None, **asdict(result)})
    else:
        _show(plan, found, result)
    return CHECK_EXIT_CODES[result.outcome]


@image.command()
@changed_file_option
@click.option("--yes", is_flag=True, help="Write without confirmation, for scripts.")
@pass_invocation
def pin(invocation: Invocation, cdk_json: Path, yes: bool) -> ExitCode:
    """Write the image ID that the plan's SSM parameter currently has into cdk.json.

    Later deployments then boot the same image. The name of the parameter is kept in trn:ami_parameter: `trn preflight`
    shows when the parameter has a newer image, and pinning again selects that image. Image IDs differ between regions.

    Exit code 0: pinned, now or earlier. 1: declined, or there is no image to pin. 3: a request to AWS failed.
    """
    plan = invocation.plan()
    parameter = plan.image_parameter
    if parameter is None:
        raise click.UsageError(
            f"{plan.ami} is already an ID, and its parameter is unknown; "
            "set trn:ami_parameter, or set trn:ami to a parameter"
        )
    current = _resolved(plan, parameter)
    before = cdk_json.read_text(encoding="utf-8")
    after = with_settings(before, {"ami": current, "ami_parameter": parameter})
    if json.loads(after) == json.loads(before):
        say(f"Already pinned: {parameter} is {current} in {plan.region}.")
        return ExitCode.OK
    changed = unified_diff(before.splitlines(), after.splitlines(), str(cdk_json), str(cdk_json), n=1, lineterm="")
    echo("\n".join(changed))
    if not yes and not click.confirm(question(f"\nWrite this to {cdk_json}?")):
        echo("Nothing was written.")
        return ExitCode.NOT_READY
    cdk_json.write_text(after, encoding="utf-8")
    say(f"Pinned: {current} in {plan.region}.")
    return ExitCode.OK


def _image_and_result(plan: Plan) -> tuple[Image | None, CheckResult]:
    account = AwsAccount(plan.region)
    try:
        image_id = account.parameter(plan.image) if plan.ami_is_parameter else plan.image
        found = account.images.image(image_id) if image_id else None
        return found, check_image(plan, account)
    except UnavailableError as error:
        return None, CheckResult(outcome="unknown", found=str(error))


def _resolved(plan: Plan, parameter: str) -> str:
    """The ID of the parameter's current image. Raises CliError if there is none, or images are simulated."""
    account = AwsAccount(plan.region)
    endpoint = account.identity().endpoint
    if endpoint:
        message = f"Nothing was pinned: {endpoint} is not AWS, and its images are simulated."
        raise CliError(message, ExitCode.NOT_READY)
    image_id = account.parameter(parameter)
    found = account.images.image(image_id) if image_id else None
    if image_id is None or found is None:
        what = f"the image {image_id} of {parameter}" if image_id else f"the SSM parameter {parameter}"
        message = f"Nothing to pin: {what} is not in {plan.region}, or not visible to this account."
        raise CliError(message, ExitCode.NOT_READY)
    return image_id


def _show(plan: Plan, found: Image | None, result: CheckResult) -> None:
    rows = [("parameter", plan.image_parameter or "none: trn:ami is an ID"), ("pinned", _pinned(plan))]
    if found:
        rows += [
            ("image", f"{found.image_id}, {found.state}"),
            ("name", found.name),
            ("owner", found.owner),
            *(
                []
                if plan.type.is_gpu
                else [("Neuron SDK", str(neuron_release(found.description) or "not named in the description"))]
            ),
            ("description", found.description),
            ("root", f"{found.root_device_name}, {found.root_volume_gib} GiB or more, {found.architecture}"),
        ]
    rows += [(result.outcome, result.found)]
    rows += [("needed", result.needed)] if result.needed else []
    rows += [("to do", result.fix)] if result.fix else []
    console().print(pairs(rows, label_width=11))


def _pinned(plan: Plan) -> str:
    return "no: every deployment uses the parameter's current image" if plan.ami_is_parameter else f"yes, {plan.ami}"
