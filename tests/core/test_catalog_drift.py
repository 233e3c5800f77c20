"""The catalogue against the EC2 API's data in moto: any change in the known differences fails.

moto's data is DescribeInstanceTypes and DescribeInstanceTypeOfferings of the real service, as of the date of the source
`ec2-api`. The API itself is not called.
"""

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import moto
import pytest

from trainium_core.catalog.catalog import builtin_catalog

RESOURCES = Path(moto.__file__).parent / "ec2" / "resources"
MIB_PER_GIB = 1024

KNOWN_DIFFERENCES: Mapping[tuple[str, str], str] = {
    (
        "trn2.3xlarge",
        "device_memory_gib",
    ): "the API says 512 GiB a chip; a Trainium2 chip has 96 (Neuron documentation)",
    (
        "trn2.48xlarge",
        "device_memory_gib",
    ): "the API says 512 GiB a chip; a Trainium2 chip has 96 (Neuron documentation)",
    ("trn2.3xlarge", "network_gbps of the cards"): "the API says 200 Gbps for the instance and 50 for its one card",
    (
        "p6-b200.48xlarge",
        "network_gbps of the cards",
    ): "the API says 3200 Gbps for the instance and 8 x 200 for its cards",
    ("g6e.48xlarge", "network_gbps of the cards"): "the API says 400 Gbps for the instance and 4 x 400 for its cards",
    ("trn2u.48xlarge", "accelerator"): "the API has no NeuronInfo for this type",
    ("trn2u.48xlarge", "neuron_devices"): "the API has no NeuronInfo for this type",
    ("trn2u.48xlarge", "neuron_cores_per_device"): "the API has no NeuronInfo for this type",
    ("trn2u.48xlarge", "device_memory_gib"): "the API has no NeuronInfo for this type",
}


def read(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())


@cache
def api_types() -> Mapping[str, Mapping[str, Any]]:
    (file,) = RESOURCES.glob("instance_types.json*")
    return {name: entry for name, entry in read(file).items() if name.startswith("trn") or name in builtin_catalog()}


@cache
def api_zones() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    zones: dict[str, dict[str, tuple[str, ...]]] = {}
    for file in sorted((RESOURCES / "instance_type_offerings" / "availability-zone-id").iterdir()):
        for offering in read(file):
            name = file.name.split(".")[0]
            if offering["InstanceType"] in api_types() and name in builtin_catalog().regions:
                region = zones.setdefault(offering["InstanceType"], {})
                region[name] = tuple(sorted({*region.get(name, ()), offering["Location"]}))
    return zones


def gbps(performance: str) -> float:
    """Bandwidth from the API's text: `8x 100 Gigabit`, `Up to 12.5 Gigabit`, `200 Gigabit`."""
    words = performance.removeprefix("Up to ").removesuffix(" Gigabit").split("x ")
    return float(words[-1]) * (int(words[0]) if len(words) > 1 else 1)


def stated_by_the_api(name: str) -> Mapping[str, Any]:
    """Every value of the catalogue that the API also states, under the catalogue's names."""
    entry = api_types()[name]
    network, disks = entry["NetworkInfo"], entry["InstanceStorageInfo"]["Disks"]
    cards = network["NetworkCards"]
    devices = _gpus(entry) if "GpuInfo" in entry else _neuron_devices(entry)
    return {
        "vcpus": entry["VCpuInfo"]["DefaultVCpus"],
        "memory_gib": entry["MemoryInfo"]["SizeInMiB"] / MIB_PER_GIB,
        "network_cards": network["MaximumNetworkCards"],
        "efa_interfaces": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "network_gbps": gbps(network["NetworkPerformance"]),
        "network_gbps of the cards": sum(card["PeakBandwidthInGbps"] for card in cards),
        "nvme_disks": sum(disk["Count"] for disk in disks),
        "nvme_disk_gb": disks[0]["SizeInGB"],
        "usage_classes": sorted(entry["SupportedUsageClasses"]),
        "zones": dict(sorted(api_zones()[name].items())),
        **devices,
    }


def _neuron_devices(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    (neuron,) = entry.get("NeuronInfo", {}).get("NeuronDevices", [{}])
    return {
        "accelerator": neuron.get("Name"),
        "neuron_devices": neuron.get("Count"),
        "neuron_cores_per_device": neuron.get("CoreInfo", {}).get("Count"),
        "device_memory_gib": neuron.get("MemoryInfo", {}).get("SizeInMiB", 0) / MIB_PER_GIB,
        "gpus": 0,
    }


def _gpus(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """GPU memory is rounded down, because the catalogue has whole GiB."""
    (gpu,) = entry["GpuInfo"]["Gpus"]
    return {
        "accelerator": gpu["Name"],
        "gpus": gpu["Count"],
        "device_memory_gib": gpu["MemoryInfo"]["SizeInMiB"] // MIB_PER_GIB,
        "neuron_devices": 0,
    }


def stated_by_us(name: str) -> Mapping[str, Any]:
    values = vars(builtin_catalog()[name])
    return {
        **values,
        "network_gbps of the cards": values["network_gbps"],
        "usage_classes": sorted(values["usage_classes"]),
        "zones": {region: tuple(sorted(zones)) for region, zones in sorted(values["zones"].items())},
    }


@pytest.mark.parametrize("name", sorted(api_types()))
def test_catalog_equals_the_api_except_known_differences(name: str) -> None:
    ours, theirs = stated_by_us(name), stated_by_the_api(name)
    differing = {key for key in theirs if ours[key] != theirs[key]}
    assert differing == {key for type_name, key in KNOWN_DIFFERENCES if type_name == name}


@pytest.mark.parametrize("name", sorted(api_types()))
def test_efa_is_on_every_card_or_none(name: str) -> None:
    entry = builtin_catalog()[name]
    assert entry.efa_interfaces in (0, entry.network_cards)


@pytest.mark.parametrize("name", sorted(api_types()))
def test_values_sourced_from_the_api_equal_it(name: str) -> None:
    from_the_api = {key for key, fact in builtin_catalog().facts[name].items() if fact.source == "ec2-api"}
    assert from_the_api <= set(stated_by_the_api(name))
    assert from_the_api.isdisjoint(key for type_name, key in KNOWN_DIFFERENCES if type_name == name)
