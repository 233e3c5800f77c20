"""Tables of the package's data: settings, checks, exit codes, rules of `trn assess`, instance types, zones, prices."""

import inspect
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from tools.reference.markdown import code, table, text
from trainium_cli.exit_codes import ExitCode
from trainium_cli.main import COMMANDS
from trainium_core.assess.rules import LIBRARY_PREFIX, STACKS, CodeRule, libraries, rules
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.engines.registry import ENGINES, engines_with_check
from trainium_core.plan.node_checks import NODE_CHECKS
from trainium_core.plan.settings_by_key import GROUP_OF, GROUPS, SETTINGS
from trainium_core.preflight.runner import CHECKS
from trainium_core.prices.file import snapshot_prices
from trainium_core.problems import SETTING_PREFIX
from trainium_core.setting_schema.setting import Setting


def settings() -> str:
    parts = (
        f"## {group}\n\n{table(('setting', 'meaning', 'default', 'allowed'), _settings_of(group))}" for group in GROUPS
    )
    return "\n\n".join(['<div class="settings" markdown>', *parts, "</div>"])


def _settings_of(group: str) -> Iterator[tuple[str, ...]]:
    for key, setting in SETTINGS.items():
        if GROUP_OF[key] == group:
            default = "**required**" if setting.default_text is None else text(setting.default_text)
            yield code(SETTING_PREFIX + key), _meaning(setting), default, text(setting.form.allowed)


def _meaning(setting: Setting) -> str:
    return text(setting.meaning) + (" &#8635;" if setting.replaces_nodes else "")


def preflight_checks() -> str:
    rows = ((code(name), _finds_out(check), _stacks(name)) for name, check in CHECKS.items())
    return table(("check", "finds out", "stacks"), rows)


def _stacks(check: str) -> str:
    with_it = engines_with_check(check)
    return ", ".join(key for key in ENGINES if key in with_it) or "all"


def node_checks() -> str:
    return table(("check", "passes if"), ((code(name), text(finds_out)) for name, finds_out in NODE_CHECKS.items()))


def _finds_out(check: Callable[..., Any]) -> str:
    """The first line of the docstring of the check, if it begins with `Whether`, else of its module."""
    own = inspect.getdoc(check) or ""
    described = own if own.startswith("Whether ") else inspect.getdoc(inspect.getmodule(check)) or ""
    return text(described.partition("\n")[0])


def assess_rules() -> str:
    return table(("rule", "finds", *STACKS, "source"), _rules(is_library=False))


def assess_libraries() -> str:
    return table(("library", "why", *STACKS, "source"), _rules(is_library=True))


def _rules(*, is_library: bool) -> Iterator[tuple[str, ...]]:
    code_rules = [rule for rule in rules().values() if not rule.id.startswith(LIBRARY_PREFIX)]
    for rule in libraries().optional if is_library else code_rules:
        shown = text(rule.why if is_library else rule.title)
        severities = (rule.severity[stack].name for stack in STACKS)
        yield code(rule.id.removeprefix(LIBRARY_PREFIX)), shown, *severities, _source(rule)


def _source(rule: CodeRule) -> str:
    shown = f"{text(rule.source)}, {rule.date}"
    return f"[{shown}]({rule.url})" if rule.url else shown


def command_groups() -> str:
    rows = ((group, ", ".join(code(f"trn {name}") for name in names)) for group, names in _groups())
    return table(("", ""), rows)


def commands() -> str:
    sections = (
        table((group, ""), ((code(f"trn {name}"), text(COMMANDS[name].summary)) for name in names))
        for group, names in _groups()
    )
    return "\n\n".join(sections)


def _groups() -> Iterator[tuple[str, list[str]]]:
    for group, members in groupby(COMMANDS, key=lambda name: COMMANDS[name].group):
        yield group, list(members)


def exit_codes() -> str:
    return table(("exit code", "means"), ((code(exit_code.value), text(exit_code.meaning)) for exit_code in ExitCode))


def instance_types() -> str:
    header = ("type", "devices", "NeuronCores", "device memory", "vCPUs", "memory", "EFA", "Gbps", "NVMe")
    return table(header, (_hardware(entry) for entry in builtin_catalog().values()))


def _hardware(entry: InstanceType) -> tuple[str, ...]:
    logical = entry.logical_neuron_cores(entry.default_logical_neuroncore_config)
    physical = entry.physical_neuron_cores
    return (
        code(entry.name),
        f"{entry.devices} {entry.accelerator}",
        "" if entry.is_gpu else str(logical) if logical == physical else f"{logical} ({physical})",
        f"{entry.total_device_memory_gib} GiB",
        str(entry.vcpus),
        f"{entry.memory_gib} GiB",
        str(entry.efa_interfaces),
        f"{entry.network_gbps:g}",
        f"{entry.nvme_disks} x {entry.nvme_disk_gb} GB",
    )


def zones() -> str:
    rows = (
        (code(entry.name), region, ", ".join(entry.zones[region]), ", ".join(entry.usage_classes))
        for entry in builtin_catalog().values()
        for region in entry.zones
    )
    return table(("type", "region", "zone IDs", "purchase options"), rows)


def prices() -> str:
    rows = (
        (code(item.instance_type), item.region, f"${price.usd:,.2f}", str(price.date), text(price.source))
        for item, price in snapshot_prices().items()
        if item.product == "on-demand" and item.instance_type and price.usd is not None
    )
    return table(("type", "region", "per hour", "as of", "source"), rows)
