"""The options that several commands share, and `Invocation`, which passes their values to the command."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trainium_cli.completion_values import complete_region, complete_setting

if TYPE_CHECKING:
    from trainium_core.clusters.cluster import ClusterStacks
    from trainium_core.plan import Plan
    from trainium_runtime.aws_service import Clients

Command = TypeVar("Command", bound=Callable[..., Any])

SELECTING_SETTINGS = frozenset({"cluster_name", "region"})
"""Settings that only select a cluster."""


@dataclass
class Invocation:
    """The shared options of one run of `trn`, its AWS clients, and its plan.

    Attributes:
        overrides: Settings of -c, as KEY=VALUE.
        cdk_json: File of --file; None for cdk.json in the working directory.
        as_json: Whether --json was given.
        cluster: Name of --cluster.
        region: Region of --region.
        cluster_stacks: Stacks by region, which `cluster_choice` reads once.
    """

    overrides: tuple[str, ...] = ()
    cdk_json: Path | None = None
    as_json: bool = False
    cluster: str | None = None
    region: str | None = None
    cluster_stacks: "dict[str, ClusterStacks]" = field(default_factory=lambda: dict[str, "ClusterStacks"]())

    @cached_property
    def clients(self) -> "Clients":
        """Clients that all requests of this run share: creating one can take longer than a request."""
        from trainium_runtime.aws_service import Clients

        return Clients()

    def require_yes(self, yes: bool) -> None:
        """Raises UsageError if the command would prompt although its output is JSON."""
        if self.as_json and not yes:
            raise click.UsageError("--json does not prompt: pass --yes as well")

    def reaches_aws(self, region: str) -> bool:
        """Whether requests go to AWS, and not to the embedded AWS or the lab."""
        from trainium_runtime.aws_service import is_aws

        return is_aws(self.clients.client("s3", region).meta.endpoint_url)

    def plan(self, *, ignoring: Collection[str] = ()) -> "Plan":
        """The plan of -c and --file, with the defaults for ignored settings. Raises PlanError."""
        from trainium_core.plan.context import plan_from_file

        return plan_from_file(self.cdk_json, self.overrides, ignoring=ignoring)

    @property
    def bootstrap_qualifier(self) -> str:
        """The qualifier of `cdk bootstrap` in -c or cdk.json. Raises PlanError."""
        from trainium_core.plan.context import bootstrap_qualifier

        return bootstrap_qualifier(self.cdk_json, self.overrides)

    @property
    def has_plan(self) -> bool:
        """Whether -c or cdk.json contains mistakes, or settings other than those that only select a cluster."""
        from trainium_core.plan.context import settings_given
        from trainium_core.problems import PlanError

        try:
            return bool(settings_given(self.cdk_json, self.overrides).keys() - SELECTING_SETTINGS)
        except PlanError:
            return True


pass_invocation = click.make_pass_decorator(Invocation, ensure=True)
"""Passes the Invocation to a command as the first argument."""


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    setattr(ctx.ensure_object(Invocation), str(param.name), value)
    return value


def _remember_name(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    return _remember(ctx, param, named(ctx, param, value))


def named(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Refuse an empty name, such as from an unset variable, which must not mean the default."""
    if value == "":
        raise click.BadParameter("is empty: pass a name, or omit the option", ctx, param)
    return value


def _refuse_empty_names(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Sequence[str]:
    for value in values:
        named(ctx, param, value)
    return values


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Print JSON instead of tables.",
)

changed_file_option = click.option(
    "--file",
    "cdk_json",
    type=click.Path(path_type=Path),
    default=Path("cdk.json"),
    callback=_remember,
    help="Path of the cdk.json to change. Default: in the working directory.",
)
"""The option --file, which is also passed to the command."""


def plan_options(command: Command) -> Command:
    """-c, --file and --json."""
    return context_options(json_option(command))


def context_options(command: Command) -> Command:
    """-c and --file."""
    command = click.option(
        "--file",
        "cdk_json",
        type=click.Path(path_type=Path),
        expose_value=False,
        callback=_remember,
        help="Path of cdk.json. Default: in the working directory.",
    )(command)
    return click.option(
        "-c",
        "--context",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        shell_complete=complete_setting,
        expose_value=False,
        callback=_remember,
        help="Override a setting, as with cdk: -c trn:nodes=4. Can be repeated.",
    )(command)


def region_option(meaning: str) -> Callable[[Command], Command]:
    """--region, whose help begins with the meaning."""
    return click.option(
        "--region",
        metavar="REGION",
        shell_complete=complete_region,
        expose_value=False,
        callback=_remember_name,
        help=f"{meaning} Default: that of cdk.json, else that of the AWS configuration.",
    )


def cluster_options(command: Command) -> Command:
    """--cluster and --region, for a cluster that cdk.json does not describe."""
    command = region_option("Region of the cluster.")(command)
    return click.option(
        "--cluster",
        metavar="NAME",
        expose_value=False,
        callback=_remember_name,
        help="Name of the cluster, of any app. Default: that of cdk.json, else the only cluster of the region.",
    )(command)


def stack_option(command: Command) -> Command:
    """--stack, passed to the command, and the options that select a cluster."""
    return click.option(
        "--stack",
        metavar="NAME",
        callback=named,
        help="CloudFormation stack of the nodes. Default: the cluster's, see `trn list`.",
    )(cluster_options(command))


def stacks_option(command: Command) -> Command:
    """--stack, repeatable, passed to the command as `stacks`, and the options that select a cluster."""
    return click.option(
        "--stack",
        "stacks",
        multiple=True,
        metavar="NAME",
        callback=_refuse_empty_names,
        help="CloudFormation stack of the cluster, existing or deleted. Repeatable. Default: those of `trn list`.",
    )(cluster_options(command))
