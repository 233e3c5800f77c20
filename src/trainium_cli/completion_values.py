"""Values that the shell completes: settings, regions and types from data; clusters, nodes and jobs from the account."""

from collections.abc import Callable, Iterable
from importlib import import_module
from threading import Thread

import click
from click.shell_completion import CompletionItem

COMPLETION = "_TRN_COMPLETE"
"""The variable by which a shell asks for what completes a line."""

_SECONDS = 0.8
"""How long somebody who presses Tab waits for an account; the start of the process takes some of a second besides."""


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


def complete_setting_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Names of settings and of their groups, without what all keys begin with."""
    from trainium_core.plan.settings_by_key import GROUPS, SETTINGS

    return [name for name in dict.fromkeys((*GROUPS, *SETTINGS)) if name.startswith(incomplete)]


def complete_region(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Regions that offer a type of the catalogue."""
    from trainium_core.catalog.catalog import builtin_catalog

    return [region for region in builtin_catalog().regions if region.startswith(incomplete)]


def complete_regions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Regions in a list with commas: the last of them."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + region for region in complete_region(ctx, param, last)]


def complete_type(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Instance types of the catalogue."""
    from trainium_core.catalog.catalog import builtin_catalog

    return [name for name in builtin_catalog() if name.startswith(incomplete)]


def complete_cluster(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Clusters of the region."""
    return _answers(ctx, incomplete, "cluster_names")


def complete_node(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Instance ids of the cluster's nodes."""
    return _answers(ctx, incomplete, "node_ids")


def complete_job(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Ids of the cluster's jobs, the newest first."""
    return _answers(ctx, incomplete, "job_ids")


def complete_rank(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Ranks of the processes of the job that is named, else of the last one."""
    return _answers(ctx, incomplete, "ranks")


def _answers(ctx: click.Context, incomplete: str, question: str) -> list[str]:
    """What the account answers to a function of completion_questions; nothing where it does not answer at once."""
    found = list[str]()
    query = Thread(target=_ask, args=(ctx, question, found), daemon=True)
    query.start()
    query.join(_SECONDS)
    return [name for name in found if name.startswith(incomplete)]


def _ask(ctx: click.Context, question: str, found: list[str]) -> None:
    questions = import_module("trainium_cli.completion_questions")  # imports what offers these values
    ask: Callable[[click.Context], Iterable[str]] = getattr(questions, question)
    try:
        with ctx.scope(cleanup=False):
            found.extend(ask(ctx))
    except questions.NO_ANSWER:
        return
