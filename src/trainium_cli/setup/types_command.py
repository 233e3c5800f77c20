"""`trn types`: the instance types of the catalogue."""

from dataclasses import asdict

import click

from trainium_cli.completion_values import complete_region
from trainium_cli.invocation import Invocation, json_option, pass_invocation
from trainium_cli.mistakes import mistake
from trainium_cli.terminal import console, print_json, table
from trainium_core.catalog.catalog import Catalog, builtin_catalog, nearest_region
from trainium_core.catalog.instance_type import InstanceType


@click.command()
@click.option("--region", metavar="REGION", shell_complete=complete_region, help="Only types that this region offers.")
@json_option
@pass_invocation
def types(invocation: Invocation, region: str | None) -> None:
    """Show the instance types a plan can name.

    These are the built-in types; trn:catalog adds others to a plan. A zone that offers a type may have no free
    capacity.
    """
    catalog = builtin_catalog()
    if region is not None and region not in catalog.regions:
        close = nearest_region(region, catalog.regions)
        fix = f"choose {close}" if close else "choose one of the allowed regions, or omit the option"
        raise mistake("--region", region, allowed=", ".join(catalog.regions), nearest=close, fix=fix)
    chosen = [entry for entry in catalog.values() if region is None or region in entry.zones]
    if invocation.as_json:
        print_json({entry.name: _as_json(entry, catalog) for entry in chosen})
        return
    _show(chosen, region, catalog)


def _as_json(entry: InstanceType, catalog: Catalog) -> dict[str, object]:
    sources = {key: fact.source for key, fact in catalog.facts[entry.name].items()}
    derived = {
        "neuron_cores": entry.logical_neuron_cores(entry.default_logical_neuroncore_config),
        "physical_neuron_cores": entry.physical_neuron_cores,
        "total_device_memory_gib": entry.total_device_memory_gib,
    }
    return {**asdict(entry), **derived, "sources": {key: catalog.sources[source] for key, source in sources.items()}}


def _show(chosen: list[InstanceType], region: str | None, catalog: Catalog) -> None:
    out = console()
    numbers = ["Devices", "Cores", "Device\nGiB", "vCPUs", "Memory\nGiB", "EFA", "Gbps", "NVMe GB"]
    out.print(table(["Type", *numbers], [_hardware(entry) for entry in chosen], right=numbers))
    offers = [row for entry in chosen for row in _offers(entry, region)]
    out.print()
    out.print(table(["Type", "Region", "Zone IDs", "Bought as"], offers, wrapping=["Bought as"]))
    out.print(
        "\n"
        "Devices: Neuron devices or GPUs. Cores: NeuronCores that training sees (in brackets: physical ones, if they "
        "differ). EFA: interfaces. "
        "A zone that offers a type may have no free capacity."
    )
    used = {fact.source for entry in chosen for fact in catalog.facts[entry.name].values()}
    for key, source in catalog.sources.items():
        if key in used:
            out.print(f"Source, {source['date']}: {source['title']}", style="dim")


def _hardware(entry: InstanceType) -> list[str]:
    logical = entry.logical_neuron_cores(entry.default_logical_neuroncore_config)
    physical = entry.physical_neuron_cores
    return [
        entry.name,
        f"{entry.devices} {entry.accelerator}",
        "" if entry.is_gpu else str(logical) if logical == physical else f"{logical} ({physical})",
        str(entry.total_device_memory_gib),
        str(entry.vcpus),
        str(entry.memory_gib),
        str(entry.efa_interfaces),
        f"{entry.network_gbps:g}",
        f"{entry.nvme_disks} x {entry.nvme_disk_gb}",
    ]


def _offers(entry: InstanceType, region: str | None) -> list[list[str]]:
    shown = [(name, zones) for name, zones in entry.zones.items() if region in (None, name)]
    return [
        [entry.name if first else "", name, " ".join(zones), ", ".join(entry.usage_classes) if first else ""]
        for first, (name, zones) in zip([True] + [False] * len(shown), shown, strict=False)
    ]
