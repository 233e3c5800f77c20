"""A catalogue file of the user adds types without code. Its errors are reported."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.plans import from_settings, the_problem
from trainium_core.catalog.catalog import load_catalog
from trainium_core.catalog.file import CatalogError, parse_catalog
from trainium_core.nodes.next_steps import torchrun_command
from trainium_core.quotas.ec2 import quota_need

TOMORROW = """
[sources.announcement]
title = "What AWS announced"
date = 2027-01-31

[types."trn9.96xlarge"]
accelerator = { value = "Trainium9", source = "announcement" }
vcpus = { value = 384, source = "announcement" }
memory_gib = { value = 4096, source = "announcement" }
neuron_devices = { value = 4, source = "announcement" }
neuron_cores_per_device = { value = 12, source = "announcement" }
logical_neuroncore_configs = { value = [1, 3], source = "announcement" }
device_memory_gib = { value = 288, source = "announcement" }
network_cards = { value = 4, source = "announcement" }
efa_interfaces = { value = 4, source = "announcement" }
network_gbps = { value = 6400.5, source = "announcement" }
nvme_disks = { value = 0, source = "announcement" }
nvme_disk_gb = { value = 0, source = "announcement" }
usage_classes = { value = ["on-demand"], source = "announcement" }
instances_per_ultraserver = { value = 1, source = "announcement" }
zones = { source = "announcement", eu-north-1 = ["eun1-az1"] }
"""


def overlay(folder: Path, text: str) -> Path:
    file = folder / "tomorrow.toml"
    file.write_text(text)
    return file


def test_added_type_has_a_plan_a_quota_and_a_torchrun_command(tmp_path: Path) -> None:
    plan = from_settings(
        instance_type="trn9.96xlarge",
        region="eu-north-1",
        nodes="2",
        catalog=str(overlay(tmp_path, TOMORROW)),
    )
    need = quota_need(plan)
    assert need is not None
    assert (plan.neuron_cores_per_node, plan.zone_id, need.code, need.vcpus) == (16, "eun1-az1", "L-2C3B7624", 768)
    assert "--nproc_per_node=16" in torchrun_command(plan)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("vcpus = {", "vcpu = {", "trn9.96xlarge: vcpus: is missing; write it as { value = ..., source"),
        (
            "vcpus = { value = 384,",
            "vcpus = { count = 384,",
            "vcpus: is {'count': 384, 'source': 'announcement'}, must be",
        ),
        ('zones = { source = "announcement",', "zones = {", "zones names no source; known: announcement"),
        ("value = 384", "value = -1", "trn9.96xlarge: vcpus: is -1, must be a whole number, 0 or more"),
        ("value = 6400.5", 'value = "fast"', "network_gbps: is 'fast', must be a number, 0 or more"),
        (
            '384, source = "announcement"',
            '384, source = "rumour"',
            "vcpus names the source 'rumour'; known: announcement",
        ),
        ("date = 2027-01-31", "", "source 'announcement' needs a title and a date"),
        ("value = [1, 3]", "value = [5]", "12 physical cores per device are not a multiple of 5 per logical core"),
        (
            "efa_interfaces = { value = 4",
            "efa_interfaces = { value = 5",
            "has 5 EFA interfaces, more than its 4 network cards",
        ),
        ("zones = {", "# zones = {", 'zones: is missing; write it as a table [types."NAME".zones]'),
        ('["eun1-az1"]', '"eun1-az1"', "zones: eu-north-1 is 'eun1-az1', must be a list of zone IDs"),
        ("zones = {", "colour = 1\nzones = {", "unknown key colour; known: accelerator, vcpus"),
        ("types.", "kinds.", "has no instance types"),
        ("sources.announcement", "sources.ec2-api", "the built-in catalogue has the key 'ec2-api' for another source"),
    ],
)
def test_error_names_the_file_and_the_invalid_value(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = TOMORROW.replace(old, new)
    if new == "sources.ec2-api":
        text = text.replace('source = "announcement"', 'source = "ec2-api"')
    with pytest.raises(CatalogError) as refused:
        load_catalog(overlay(tmp_path, text))
    assert says in str(refused.value)
    assert str(refused.value).startswith(f"{tmp_path / 'tomorrow.toml'}: ")


def test_invalid_file_is_a_problem_of_its_setting(tmp_path: Path) -> None:
    file = overlay(tmp_path, TOMORROW.replace("value = 384", "value = -1"))
    problem = the_problem(catalog=str(file))
    assert problem.key == "catalog"
    assert "vcpus: is -1" in problem.fix


toml_values = st.recursive(
    st.integers(-2, 5) | st.booleans() | st.floats(allow_nan=True) | st.sampled_from(["announcement", "x", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["value", "source", "a"]), inner),
    max_leaves=4,
)


def as_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {as_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower()


@settings(max_examples=150)
@given(
    key=st.sampled_from([line.split(" =")[0] for line in TOMORROW.splitlines() if " = {" in line]), value=toml_values
)
def test_any_value_is_read_or_refused(key: str, value: Any) -> None:
    lines = [f"{key} = {as_toml(value)}" if line.startswith(f"{key} =") else line for line in TOMORROW.splitlines()]
    try:
        (entry,) = parse_catalog("\n".join(lines), "file").types
    except CatalogError:
        return
    assert entry.logical_neuron_cores(entry.default_logical_neuroncore_config) >= 0


@pytest.mark.parametrize("text", [f"a = {'[' * 5000}", f"a = {'1' * 5000}"], ids=["deep", "long"])
def test_toml_that_the_parser_cannot_read_is_refused(text: str) -> None:
    with pytest.raises(CatalogError, match="file: not TOML"):
        parse_catalog(text, "file")


def test_missing_file_is_reported_as_unreadable(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"none\.toml: cannot be read"):
        load_catalog(tmp_path / "none.toml")
