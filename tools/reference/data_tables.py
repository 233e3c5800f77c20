"""Tables of the data in the package: known errors, instance types, zones, prices."""

from tools.reference.markdown import code, table, text
from trainium_core.catalog.catalog import builtin_catalog
from trainium_core.catalog.instance_type import InstanceType
from trainium_core.explanations.known_errors import KnownError, known_errors
from trainium_core.prices.file import snapshot_prices


def errors() -> str:
    return "\n\n".join(_error(one) for one in known_errors())


def _error(one: KnownError) -> str:
    heading = one.name[0].upper() + one.name[1:]
    seen = ", ".join(code(part) for part in one.pattern.split("|")) if _is_plain(one.pattern) else ""
    lines = [f"### {heading}", f"**Cause.** {text(one.cause)}.", f"**Fix.** {text(one.fix)}."]
    lines += [f"Its text holds {seen}."] if seen else []
    source = f"[{text(one.source)}]({one.url})" if one.url else text(one.source)
    return "\n\n".join([*lines, f"Source, {one.date}: {source}"])


def _is_plain(pattern: str) -> bool:
    return not any(special in pattern for special in "()[]{}?\\")


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
    return table(("type", "region", "zone IDs", "bought as"), rows)


def prices() -> str:
    rows = (
        (code(item.instance_type), item.region, f"${price.usd:,.2f}", str(price.date), text(price.source))
        for item, price in snapshot_prices().items()
        if item.product == "on-demand" and item.instance_type and price.usd is not None
    )
    return table(("type", "region", "per hour", "as of", "source"), rows)
