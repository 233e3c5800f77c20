"""User data as text: structure and size."""

import dataclasses
from typing import Any

import pytest
import yaml

from tests.userdata.parts import parts_of, script_of
from tests.userdata.plans import LOCATIONS, every_plan, plan_for, plan_id
from trainium_core.facts import facts
from trainium_core.plan.node_settings import node_settings
from trainium_local.stand_ins.nodes import report_url
from trainium_userdata.locations import NodeLocations
from trainium_userdata.script import node_script, node_user_data
from trainium_wire.node_record import REPORT_URL_VARIABLE

TOKENS = NodeLocations(
    region="${Token[AWS.Region.7]}",
    cache_url="s3://${Token[TOKEN.101]}/neuron-compile-cache",
    report_url="s3://${Token[TOKEN.102]}/nodes",
    node_script_url="s3://cdk-assets-${Token[AWS.AccountId.3]}/node-script.sh",
    lustre_dns="${Token[TOKEN.103]}",
    lustre_mount_name="${Token[TOKEN.104]}",
    efs_dns="fs-0123456789abcdef0.efs.${Token[AWS.Region.7]}.amazonaws.com",
)
DNS_NAME = f"{'f' * 20}.fsx.us-northwest-10.amazonaws.com.cn"
LONGEST_LOCATIONS = NodeLocations(
    region="us-northwest-10",
    cache_url=f"s3://{'b' * 63}/neuron-compile-cache",
    report_url=f"s3://{'b' * 63}/nodes",
    node_script_url=f"s3://{'b' * 63}/{'0' * 64}.sh",
    lustre_dns=DNS_NAME,
    lustre_mount_name="abcdefgh",
    efs_dns=DNS_NAME,
)
MARGIN = 1_024
OPTIONS: list[dict[str, Any]] = [
    {},
    {"neuron_software": "install", "ami": "ami-0123456789abcdef0", "egress": "nat-gateway"},
    {"fsx_lustre": 1200, "efs": "new", "internode_ssh": True},
    {"setup_script": "#!/bin/bash\n" + "echo long\n" * 5_000},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "+".join(options) or "plain")
def test_same_plan_gives_the_same_bytes(options: dict[str, Any]):
    plans = [plan_for("trn2.48xlarge", **options) for _ in range(2)]
    assert node_user_data(node_settings(plans[0]), LOCATIONS) == node_user_data(node_settings(plans[1]), LOCATIONS)
    assert node_script(node_settings(plans[0])) == node_script(node_settings(plans[1]))


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "+".join(options) or "plain")
def test_user_data_of_every_plan_fit_with_a_margin(options: dict[str, Any]):
    limit = facts()["user_data"]["limit_bytes"] - MARGIN
    sizes = {
        plan_id(plan): len(node_user_data(node_settings(plan), LONGEST_LOCATIONS).encode())
        for plan in every_plan(**options)
    }
    assert {name: size for name, size in sizes.items() if size > limit} == {}


def test_cloud_init_configures_only_locations_and_a_retry():
    configuration = yaml.safe_load(
        parts_of(node_user_data(node_settings(plan_for("trn2.48xlarge")), LONGEST_LOCATIONS))["text/cloud-config"]
    )
    assert set(configuration) == {"bootcmd", "write_files"}
    (file,) = configuration["write_files"]
    assert (set(file), file["permissions"]) == ({"path", "permissions", "content"}, "0644")
    assert file["path"] == "/etc/trn/places.env"
    assert file["content"].splitlines() == LONGEST_LOCATIONS.lines


def test_user_variables_are_in_a_separate_file():
    document = node_user_data(node_settings(plan_for("trn2.48xlarge")), LONGEST_LOCATIONS, {"DATA": "czM6Ly9kYXRh"})
    _, file = yaml.safe_load(parts_of(document)["text/cloud-config"])["write_files"]
    assert (file["path"], file["content"]) == ("/etc/trn/environment.base64", "DATA=czM6Ly9kYXRh\n")


def test_parts_have_types_that_cloud_init_supports():
    parts = parts_of(node_user_data(node_settings(plan_for("trn1.2xlarge")), LOCATIONS))
    assert list(parts) == ["text/cloud-config", "application/gzip"]
    assert parts["text/cloud-config"].startswith("#cloud-config\n")


def test_tokens_are_only_in_the_assignments_of_locations():
    document = node_user_data(node_settings(plan_for("trn2.48xlarge", setup_script="true")), TOKENS)
    with_tokens = [line.strip() for line in document.splitlines() if "Token[" in line]
    assert with_tokens == TOKENS.lines
    assert "Token[" not in script_of(document)


def test_embedded_aws_finds_the_report_url():
    document = node_user_data(node_settings(plan_for("trn1.32xlarge")), LOCATIONS)
    assert report_url(document.encode()) == LOCATIONS.report_url
    assert LOCATIONS.lines.count(f"{REPORT_URL_VARIABLE}={LOCATIONS.report_url}") == 1


def test_number_of_nodes_does_not_change_user_data():
    two, four = (node_user_data(node_settings(plan_for("trn1.32xlarge", nodes=n)), LOCATIONS) for n in (2, 4))
    assert two == four


@pytest.mark.parametrize("change", [{"setup_script": "true"}, {"suppress_checks": ("nvme",)}])
def test_changed_script_changes_user_data(change: dict[str, Any]):
    first, second = (
        node_user_data(node_settings(plan_for("trn1.32xlarge", **settings)), LOCATIONS) for settings in ({}, change)
    )
    assert first != second


def test_only_a_bare_node_downloads_software():
    scripts = {node_script(node_settings(plan)) for plan in every_plan()}
    words = ("curl", "apt-get", "dnf ", "repos.neuron", "efa-installer")
    assert [word for word in words for script in scripts if word in script] == []


@pytest.mark.parametrize("location", [field.name for field in dataclasses.fields(NodeLocations)])
@pytest.mark.parametrize("value", ["", "s3://a b", "s3://a;reboot", "$(reboot)", "${HOME}", "s3://a'", "s3://a\nb"])
def test_location_with_shell_syntax_is_refused(location: str, value: str):
    with pytest.raises(ValueError, match=location):
        dataclasses.replace(LOCATIONS, **{location: value})
