"""Values that the shell completes: settings, regions and instance types from data, clusters from the account."""

from threading import Thread

import click
from click.shell_completion import CompletionItem

_SECONDS = 2
"""How long somebody who presses Tab waits for an account."""


def complete_setting(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Keys of settings, and after `=` the values that one can have."""
    from trainium_core.catalog.catalog import builtin_catalog
    from trainium_core.plan.settings_by_key import SETTINGS
    from trainium_core.problems import SETTING_PREFIX

    key, has_value, value = incomplete.partition("=")
    if not has_value:
        named = [(f"{SETTING_PREFIX}{name}=", setting.meaning) for name, setting in SETTINGS.items()]
        return [CompletionItem(name, help=meaning) for name, meaning in named if name.startswith(incomplete)]
    name = key.removeprefix(SETTING_PREFIX)
    if name not in SETTINGS or not key.startswith(SETTING_PREFIX):
        return []
    values = tuple(builtin_catalog()) if name == "instance_type" else SETTINGS[name].form.choices
    return [CompletionItem(f"{key}={one}") for one in values if one.startswith(value)]


def complete_region(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Regions that offer a type of the catalogue."""
    from trainium_core.catalog.catalog import builtin_catalog

    return [region for region in builtin_catalog().regions if region.startswith(incomplete)]


def complete_cluster(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Clusters of the region; none where the account does not answer at once."""
    found = list[str]()
    asking = Thread(target=_clusters, args=(ctx.params.get("region"), found), daemon=True)
    asking.start()
    asking.join(_SECONDS)
    return sorted(name for name in {*found} if name.startswith(incomplete))


def _clusters(region: str | None, found: list[str]) -> None:
    import os

    from botocore.exceptions import BotoCoreError

    from trainium_core.clusters.aws_account import AwsClustersAccount
    from trainium_runtime.aws_session import AwsSession
    from trainium_runtime.errors import UnavailableError

    try:
        session = AwsSession()
        region = region or os.environ.get("AWS_REGION") or session.region_name
        stacks = AwsClustersAccount(region).cluster_stacks().stacks if region else ()
    except (UnavailableError, BotoCoreError):
        return
    found.extend(stack.cluster for stack in stacks)
