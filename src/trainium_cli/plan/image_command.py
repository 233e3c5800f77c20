"""`trn image`: the image of the plan's nodes, and pinning it in cdk.json."""

import json
from collections.abc import Mapping
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
from trainium_core.catalog.neuron_software import (
    Framework,
    image_facts,
    image_name_framework,
    image_system,
    pytorch_for,
)
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
@click.option("--yes", is_flag=True, help="Write without confirmation, for scripts.")
@changed_file_option
@pass_invocation
def pin(invocation: Invocation, cdk_json: Path, yes: bool) -> ExitCode:
    """Write the ID of the plan's current image into cdk.json.

    Later deployments then boot the same image. Image IDs differ between regions.

    If trn:ami is an SSM parameter, or an ID with a trn:ami_parameter, the image is that of the parameter, whose name is
    kept in trn:ami_parameter: `trn preflight` shows when it has a newer image. Images with native PyTorch have no
    parameter. For a type whose PyTorch AWS supports only there, such as trn2.48xlarge, and for the ID of such an image,
    the image is the newest one of AWS with that name. Pinning again selects a newer image.

    Exit code 0: pinned, now or earlier. 1: declined, or there is no image to pin. 3: a request to AWS failed.
    """
    plan = invocation.plan()
    with waiting(f"Asking AWS in {plan.region} ..."):
        current, source = _current(plan)
    before = cdk_json.read_text(encoding="utf-8")
    after = with_settings(before, current)
    if json.loads(after) == json.loads(before):
        say(f"Already pinned: {source} is {current['ami']} in {plan.region}.")
        return ExitCode.OK
    changed = unified_diff(before.splitlines(), after.splitlines(), str(cdk_json), str(cdk_json), n=1, lineterm="")
    echo("\n".join(changed))
    if not yes and not click.confirm(question(f"\nWrite this to {cdk_json}?")):
        echo("Nothing was written.")
        return ExitCode.NOT_READY
    cdk_json.write_text(after, encoding="utf-8")
    say(f"Pinned: {current['ami']}, {source}, in {plan.region}.")
    return ExitCode.OK


def _image_and_result(plan: Plan) -> tuple[Image | None, CheckResult]:
    account = AwsAccount(plan.region)
    try:
        image_id = account.parameter(plan.image) if plan.ami_is_parameter else plan.image
        found = account.images.image(image_id) if image_id else None
        return found, check_image(plan, account)
    except UnavailableError as error:
        return None, CheckResult(outcome="unknown", found=str(error))


def _current(plan: Plan) -> tuple[Mapping[str, str], str]:
    """The settings that pin the plan's current image, and what names it: a parameter, or the image's name.

    Raises:
        CliError: There is none, or images are simulated.
        UsageError: The image was given by its ID, and nothing says which images are newer.
    """
    account = AwsAccount(plan.region)
    endpoint = account.identity().endpoint
    if endpoint:
        message = f"Nothing was pinned: {endpoint} is not AWS, and its images are simulated."
        raise CliError(message, ExitCode.NOT_READY)
    framework = _framework_by_name(plan, account)
    if framework is not None:
        newest = _newest(plan, account, framework)
        return {"ami": newest.image_id}, newest.name
    parameter = plan.image_parameter
    if parameter is None:
        raise click.UsageError(
            f"{plan.ami} is already an ID, and its parameter is unknown; "
            "set trn:ami_parameter, or set trn:ami to a parameter"
        )
    image_id = account.parameter(parameter)
    found = account.images.image(image_id) if image_id else None
    if image_id is None or found is None:
        what = f"the image {image_id} of {parameter}" if image_id else f"the SSM parameter {parameter}"
        message = f"Nothing to pin: {what} is not in {plan.region}, or not visible to this account."
        raise CliError(message, ExitCode.NOT_READY)
    return {"ami": image_id, "ami_parameter": parameter}, parameter


def _framework_by_name(plan: Plan, account: AwsAccount) -> Framework | None:
    """The framework of the plan whose images have a name, but no SSM parameter; None if a parameter names the image."""
    if plan.ami is None:
        framework = pytorch_for(plan.type)
    elif plan.image_parameter is None:
        image = account.images.image(plan.image)
        framework = image and image_name_framework(image.name)
    else:
        return None
    return framework if framework and not framework.parameters else None


def _newest(plan: Plan, account: AwsAccount, framework: Framework) -> Image:
    known = image_facts(gpus=framework.gpus)
    systems = image_facts(gpus=False)["operating_systems"]
    images = [image for glob in framework.image_names for image in account.images.available(known["owner"], glob)]
    fitting = [image for image in images if image_system(image.name) in systems]
    if not fitting:
        others = f" for {' or '.join(systems)}; there are: {', '.join(i.name for i in images)}" if images else ""
        message = f"Nothing to pin: no image in {plan.region} is named {framework.image_names[0]!r}{others}."
        raise CliError(message, ExitCode.NOT_READY)
    return fitting[0]


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
