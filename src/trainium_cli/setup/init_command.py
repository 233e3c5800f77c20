"""`trn init`: creates a folder with a plan, a CDK app and a job."""

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from trainium_cli.completion_values import complete_region, complete_type
from trainium_cli.exit_codes import CliError, ExitCode
from trainium_cli.mistakes import unknown_name
from trainium_cli.setup.evidence_files import write_evidence_files
from trainium_cli.terminal import console, echo, pairs, question, say
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.catalog.neuron_software import pytorch_for
from trainium_core.costs.estimate import estimate, sales_warning
from trainium_core.naming import DEFAULT_CLUSTER_NAME
from trainium_core.plan import Plan
from trainium_core.plan.pilot_end import passed_end, read_pilot_end
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_core.plan.values import CAPACITY, CapacityKind
from trainium_core.prices.price import CAPACITY_BLOCK
from trainium_core.problems import SETTING_PREFIX, PlanError
from trainium_core.setting_schema.forms import UnreadableError
from trainium_runtime.pilot_end import utc_text

_IN_AN_EMPTY_FOLDER = {
    "requirements.txt": "requirements.txt",
    ".gitignore": "gitignore",
    "job/fit.py": "fit.py",
    "job/job.toml": "job.toml",
}
"""The files beside cdk.json and the CDK app, each with the name of its text in the folder `project`, without `.txt`."""

_LONGEST_NAME = 32
_TRY, _DECIDE = "try", "decide"
_PURPOSES = {
    _TRY: {"instance_type": "trn1.32xlarge", "ends": "8h"},
    _DECIDE: {"instance_type": "trn2.48xlarge", "capacity": "capacity-block", "ends": "1d"},
}
"""The proposed settings by purpose. AWS lists no on-demand price for Trainium2, and the shortest block is one day."""

_REGIONS = ("us-west-2", "us-east-2", "us-east-1")
"""The first of these regions that offers the type is proposed. Accounts can use them without enabling them."""

_NO_VALUE = (("ends", "never"), ("reservation_id", "none"))
"""Answers that set nothing."""

_NEEDS_A_RESERVATION: tuple[CapacityKind, ...] = ("capacity-block", "reservation")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option(
    "--for",
    "purpose",
    type=click.Choice(list(_PURPOSES)),
    help="What the pilot is for, which sets the proposed values: to try the tools (trn1.32xlarge on demand), or to "
    "decide on Trainium (trn2.48xlarge in a Capacity Block, with native PyTorch). Default: try.",
)
@click.option(
    "--type",
    "instance_type",
    metavar="TYPE",
    shell_complete=complete_type,
    help="Instance type of every node, see `trn types`.",
)
@click.option("--region", metavar="REGION", shell_complete=complete_region, help="AWS region to deploy to.")
@click.option("--nodes", metavar="NUMBER", help="Number of nodes.")
@click.option("--capacity", metavar="HOW", help=f"How the nodes are bought: {', '.join(CAPACITY)}.")
@click.option("--reservation-id", metavar="ID", help="The Capacity Block or reservation to launch into.")
@click.option("--ends", metavar="WHEN", help="When the nodes are terminated: 8h, 5d, 2026-12-01T18:00Z, or never.")
@click.option("--name", metavar="NAME", help="Name of the cluster. Default: the folder's name.")
@click.option("--yes", is_flag=True, help="Do not prompt: use the proposed values for options that are not given.")
@click.option(
    "--evidence",
    is_flag=True,
    help="Write pilot.toml, bench.toml and tco.toml for the plan in the folder, and nothing else.",
)
def init(folder: Path, yes: bool, evidence: bool, purpose: str | None, **options: str | None) -> ExitCode:
    """Write a plan, a CDK app and a first job into a folder.

    On a terminal, prompts for the options that are not given, except --name. Shows the list price, and changes nothing
    on AWS. In a folder with files, writes only the plan and the CDK app, which is cdk_app.py if app.py exists. Never
    overwrites a file.

    With --evidence, writes the files of `trn pilot`, `trn bench` and `trn tco` for an existing plan and its job. If the
    folder has the GPU plan of `trn baseline --output gpu`, they compare both clusters.

    Exit code 0: written. 1: declined. 2: invalid option, an end that has passed, or cdk.json exists; with --evidence,
    the plan or the job is missing.
    """
    if evidence:
        if purpose or any(options.values()):
            raise click.UsageError("--evidence takes no other option: the plan has their values")
        written = write_evidence_files(folder)
        next_step = "Next: complete them, then trn pilot pilot.toml --dry-run"
        say(f"Written: {', '.join(written)}.\n{next_step}" if written else "Nothing was written: all files exist.")
        return ExitCode.OK
    if (folder / "cdk.json").exists():
        raise click.UsageError(f"{folder}: already contains cdk.json; specify another folder")
    prompts = sys.stdin.isatty() and not yes
    if not prompts and not yes and not (options["instance_type"] and options["region"]):
        raise click.UsageError("not a terminal: pass --type and --region, or --yes for the proposed values")
    settings, plan = new_plan(folder, options, purpose, prompts=prompts)
    _say_the_price(plan)
    if prompts and not click.confirm(question(f"\nWrite this to {folder.resolve()}?"), default=True):
        say("Nothing was written.")
        return ExitCode.NOT_READY
    written = write_project(folder, settings)
    inside = "" if folder == Path() else f"cd {shlex.quote(str(folder))}; "
    pin = "trn image pin, " if _has_a_better_image(plan) else ""
    say(f"\nWritten: {', '.join(written)}.\nNext: {inside}trn doctor, {pin}trn plan, trn deploy")
    return ExitCode.OK


def new_plan(
    folder: Path, options: Mapping[str, str | None], purpose: str | None = None, *, prompts: bool
) -> tuple[Mapping[str, str], Plan]:
    """The settings of a new plan, and the plan.

    Args:
        folder: The folder of the project, after which the cluster is named.
        options: Answers by setting; `name` is the name of the cluster. None is prompted for or proposed.
        purpose: What the pilot is for, which sets the proposed values.
        prompts: Prompt for the answers that are None.

    Raises:
        PlanError: The plan is invalid, or its end has passed.
        UsageError: An option is invalid.
        CliError: The nodes must be reserved first.
    """
    options = {**options, "name": options.get("name") or _cluster_name(folder)}
    settings = _prompt_for_settings(purpose, options) if prompts else _proposed(_PURPOSES[purpose or _TRY], options)
    settings["project_id"] = str(uuid4())
    plan = Plan.from_settings(settings, folder)
    if plan.pilot.ends and (problem := passed_end(plan.pilot.ends, now=datetime.now(UTC))):
        raise PlanError([problem])
    return settings, plan


def _cluster_name(folder: Path) -> str:
    """The name of a folder as the name of a cluster; the default name if it has no letter."""
    words = re.findall(r"[a-z0-9]+", folder.resolve().name.lower())
    name = "-".join(words).lstrip("0123456789-")[:_LONGEST_NAME].rstrip("-")
    return name or DEFAULT_CLUSTER_NAME


def _proposed(proposed: Mapping[str, str], options: Mapping[str, str | None]) -> dict[str, str]:
    answers = {**proposed, **_given_answers(options)}
    regions = builtin_catalog()[answers["instance_type"]].zones if answers["instance_type"] in builtin_catalog() else ()
    return _settings({"region": _region(tuple(regions))} | answers)


def _prompt_for_settings(purpose: str | None, options: Mapping[str, str | None]) -> dict[str, str]:
    """Prompt for the purpose and for each setting, with the proposed value as its default."""
    catalog, answers = builtin_catalog(), _given_answers(options)
    if purpose is None and "instance_type" not in answers:
        _say_the_purposes()
        purpose = click.prompt(question("What is the pilot for?"), type=click.Choice(list(_PURPOSES)), default=_TRY)
    proposed = _PURPOSES[purpose or _TRY]
    # A GPU plan comes from `trn baseline`, or from --type.
    neuron_types = tuple(name for name, kind in catalog.items() if not kind.is_gpu)
    _prompt(answers, "instance_type", "Instance type", proposed["instance_type"], neuron_types)
    if answers["instance_type"] not in catalog:
        raise click.UsageError(unknown_name("instance type", answers["instance_type"], tuple(catalog)))
    regions = tuple(catalog[answers["instance_type"]].zones)
    _prompt(answers, "region", "Region", _region(regions), regions)
    _prompt(answers, "nodes", "Nodes", str(SETTINGS["nodes"].default))
    _prompt(answers, "capacity", "Purchase option", _proposed_capacity(answers), CAPACITY)
    if answers["capacity"] in _NEEDS_A_RESERVATION:
        _prompt(answers, "reservation_id", "ID of the Capacity Block or reservation (none: how to get one)", "none")
    if answers.get("reservation_id") == "none":
        plan = " ".join(f"-c trn:{key}={answers[key]}" for key in ("instance_type", "region", "nodes"))
        offers = f"`trn capacity {plan}` shows what AWS offers, and how to buy it"
        raise CliError(f"Nothing was written: first reserve the nodes. {offers}.", ExitCode.NOT_READY)
    _prompt(answers, "ends", "When to terminate the nodes (8h, 5d, 2026-12-01T18:00Z, never)", proposed["ends"])
    return _settings(answers)


def _proposed_capacity(answers: Mapping[str, str]) -> str:
    """Capacity Blocks if AWS lists no on-demand price for the type in the region, else the default."""
    plan = Plan.of(instance_type=answers["instance_type"], region=answers["region"])
    return CAPACITY_BLOCK if sales_warning(plan, estimate(plan, aws=None)) else SETTINGS["capacity"].default


def _prompt(
    answers: dict[str, str], key: str, text: str, proposed: str | None, choices: tuple[str, ...] | None = None
) -> None:
    """Prompt for a setting until the answer is valid and one of the choices."""

    def read(answer: str) -> str:
        value = answer.strip()
        if choices and value not in choices:
            raise click.UsageError(unknown_name(text.lower(), value, choices))
        try:
            SETTINGS[key].form.read(value)
        except UnreadableError as error:
            if (key, value) not in _NO_VALUE:
                raise click.UsageError(str(error)) from None
        return value

    if key not in answers:
        shown = f"{text} ({', '.join(choices)})" if choices else text
        answers[key] = click.prompt(
            question(shown), default=proposed, show_default=proposed is not None, value_proc=read
        )


def _region(offering: tuple[str, ...]) -> str:
    return next((region for region in _REGIONS if region in offering), next(iter(offering), _REGIONS[0]))


def _given_answers(options: Mapping[str, str | None]) -> dict[str, str]:
    return {"cluster_name" if key == "name" else key: value for key, value in options.items() if value is not None}


def _settings(answers: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in answers.items() if (key, value) not in _NO_VALUE}


def _say_the_price(plan: Plan) -> None:
    """Show what a new plan costs, when it ends, and whether AWS supports training with its image."""
    estimated = estimate(plan, aws=None)
    end = "The nodes run until you terminate them."
    if plan.pilot.ends:
        at = read_pilot_end(plan.pilot.ends).at
        end = f"The nodes are terminated {f'at {utc_text(at)}' if at else f'after {plan.pilot.ends}'}."
    say(f"{plan.cluster_name}: {plan.nodes} x {plan.instance_type}, {plan.capacity}, in {plan.region}")
    rows = [
        ("running", f"{estimated.running_hour} per hour, at list price"),
        ("asleep", f"{estimated.asleep_month} per month"),
        ("end", end),
    ]
    if _has_a_better_image(plan):
        rows.append(("image", f"`trn image pin` selects AWS's newest image with {pytorch_for(plan.type).title}."))
    elif plan.framework and plan.framework.support:
        rows.append(("support", f"{plan.framework.support}."))
    console().print(pairs(rows))
    warning = sales_warning(plan, estimated)
    if warning:
        echo(f"warning: {warning}", err=True)


def _has_a_better_image(plan: Plan) -> bool:
    """Whether AWS supports training on the type only with another image than the default one."""
    return bool(plan.framework and plan.framework.support and pytorch_for(plan.type) != plan.framework)


def _say_the_purposes() -> None:
    """What each purpose costs, and what it can show."""
    say("")
    console().print(pairs([(purpose, _purpose_text(purpose)) for purpose in _PURPOSES]))
    say("")


def _purpose_text(purpose: str) -> str:
    proposed = _proposed(_PURPOSES[purpose], {})
    # A price does not depend on the reservation.
    reserved = {"reservation_id": "cr-00000000000000000"} if "capacity" in proposed else {}
    plan = Plan.from_settings({**proposed, **reserved}, Path())
    price = f"1 x {plan.instance_type}, {plan.capacity}: {estimate(plan, aws=None).running_hour} per hour"
    framework = pytorch_for(plan.type)
    if framework.support:
        return f"the tools: deploy, train, measure, destroy. {price}. No ground for a decision: {framework.support}."
    return f"whether Trainium is worth it, with {framework.title}, which AWS supports. {price}, paid in advance."


def write_project(folder: Path, settings: Mapping[str, str]) -> Sequence[str]:
    """Write the files that a project lacks: cdk.json and the CDK app; in an empty folder also requirements, .gitignore
    and a job.

    An existing app.py may be the user's: the CDK app is then cdk_app.py.

    Returns:
        The paths of the written files.
    """
    is_empty = not folder.exists() or all(path.name.startswith(".") for path in folder.iterdir())
    app = "app.py" if not (folder / "app.py").exists() else "cdk_app.py"
    texts = files("trainium_cli.setup") / "project"
    flags = json.loads((texts / "feature_flags.json").read_text(encoding="utf-8"))
    plan = {f"{SETTING_PREFIX}{key}": _as_number(value) for key, value in settings.items()}
    document: dict[str, Any] = {"app": f"python3 {app}", "context": {**plan, **flags}}
    written = {"cdk.json": f"{json.dumps(document, indent=2)}\n"}
    for name, text in {app: "app.py", **(_IN_AN_EMPTY_FOLDER if is_empty else {})}.items():
        written[name] = (
            (texts / f"{text}.txt").read_text(encoding="utf-8").replace("{version}", version("trainium-cdk"))
        )
    written = {name: text for name, text in written.items() if not (folder / name).exists()}
    for name, text in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return list(written)


def _as_number(value: str) -> int | str:
    return int(value) if value.isascii() and value.isdigit() else value
