"""Shell completion of values: settings, their names and choices, regions, instance types."""

import click
from click.shell_completion import CompletionItem


def complete_setting(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Keys of settings; after `=`, instance types or the choices of a setting."""
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
    return [CompletionItem(f"{key}={choice}") for choice in values if choice.startswith(value)]


def complete_setting_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Names of settings and groups, without the prefix."""
    from trainium_core.plan.settings_by_key import GROUPS, SETTINGS

    return [name for name in dict.fromkeys((*GROUPS, *SETTINGS)) if name.startswith(incomplete)]


def complete_region(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Regions that offer a type of the catalogue."""
    from trainium_core.catalog.catalog import builtin_catalog

    return [region for region in builtin_catalog().regions if region.startswith(incomplete)]


def complete_regions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Completes the last region of a comma-separated list."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + region for region in complete_region(ctx, param, last)]


def complete_type(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Instance types of the catalogue."""
    from trainium_core.catalog.catalog import builtin_catalog

    return [name for name in builtin_catalog() if name.startswith(incomplete)]
