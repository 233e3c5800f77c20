"""The user data run to its end on a node of files.

Real here: the rendered script, bash, python3, curl, its signature of the record (checked with botocore's own signer).
Stand-ins: neuron-ls (documented output), /sys, /proc, the metadata service, S3. So this shows what a node concludes
from what it is told; that neuron-ls, the drivers and EFA speak so can only be seen on the hardware.
"""

import pytest

from tests.userdata.aws_stand_in import ROLE, SECRETS, AwsStandIn
from tests.userdata.conftest import NodeMaker
from tests.userdata.neuron_ls import NEWER_FIELDS, NO_DRIVER, devices_of
from tests.userdata.plans import plan_for
from trainium_core.catalog import builtin_catalog
from trainium_core.plan import Plan

GIB = 2**30
PLAN = plan_for("trn1.32xlarge", nodes=2)


def with_setup_script(text: str) -> Plan:
    return plan_for("trn1.32xlarge", setup_script=text)


@pytest.mark.parametrize("instance_type", builtin_catalog())
def test_a_sound_node_of_every_type_proves_itself(instance_type: str, node_for: NodeMaker):
    boot = node_for(plan_for(instance_type)).boot()
    assert boot.record is not None, boot.log
    assert (boot.exit_code, boot.record.state, boot.record.reason) == (0, "proven", ""), boot.log


def test_the_record_tells_every_check_with_what_was_expected_and_found(node_for: NodeMaker):
    record = node_for(plan_for("trn2.48xlarge")).boot().record
    assert record
    assert [(check.name, check.expected, check.found, check.ok) for check in record.checks] == [
        ("Neuron devices", "16", "16", True),
        ("NeuronCores", "64", "64", True),
        ("device memory", "96 GiB", "96 GiB", True),
        ("LNC", "2", "2", True),
        ("EFA devices", "16", "16", True),
    ]


def test_the_record_is_sent_as_json(node_for: NodeMaker, aws: AwsStandIn):
    node_for(PLAN).boot()
    assert aws.content_types == ["application/json"]


def test_the_record_also_stays_on_the_node(node_for: NodeMaker, aws: AwsStandIn):
    node = node_for(PLAN)
    node.boot()
    assert [node.read("var/lib/trn/record.json").strip()] == list(aws.records.values())


def test_a_node_with_lnc_1_proves_itself_with_all_its_physical_cores(node_for: NodeMaker):
    node = node_for(plan_for("trn2.3xlarge", logical_neuroncore_config=1))
    record = node.boot().record
    assert record
    assert (record.state, record.checks[1].found) == ("proven", "8")
    assert node.read("opt/aws/neuron/logical_nc_config") == "NEURON_LOGICAL_NC_CONFIG=1\n"


def test_newer_tools_that_print_more_fields_are_understood(node_for: NodeMaker):
    node = node_for(PLAN)
    node.neuron_ls([device | NEWER_FIELDS for device in devices_of(PLAN)])
    assert node.boot().exit_code == 0


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"nc_count": 1}, "31 of 32 NeuronCores"),
        ({"memory_size": 16 * GIB}, "device memory is 16 GiB on device 7, not 32 GiB"),
        ({"memory_size": 32 * GIB - 1}, "device memory is 34359738367 bytes on device 7, not 32 GiB"),
        ({"memory_size": None}, "device memory is unknown on device 7, not 32 GiB"),
        ({"logical_neuroncore_config": 2}, "LNC is unknown on device 0, 1, 2, 3, 4, 5, 6, 8, 9"),
    ],
)
def test_a_device_that_is_not_as_expected_is_named(changed: dict[str, object], reason: str, node_for: NodeMaker):
    node = node_for(PLAN)
    devices = devices_of(PLAN)
    devices[7] |= changed
    node.neuron_ls(devices)
    boot = node.boot()
    assert boot.exit_code != 0
    assert boot.record
    assert boot.record.state == "failed"
    assert boot.record.reason.startswith(reason), boot.record.reason


def test_a_missing_device_is_named(node_for: NodeMaker):
    node = node_for(PLAN)
    node.neuron_ls([device for device in devices_of(PLAN) if device["neuron_device"] != 7])
    boot = node.boot()
    assert boot.exit_code != 0
    assert boot.record
    assert boot.record.state == "failed"
    assert boot.record.reason.startswith("neuron-ls shows 15 of 16 Neuron devices (missing 7)")


def test_a_missing_efa_device_fails_the_node(node_for: NodeMaker):
    node = node_for(PLAN)
    node.efa_devices(7)
    record = node.boot().record
    assert record
    assert (record.state, record.reason) == ("failed", "7 of 8 EFA devices [verify the devices]")


def test_a_failed_record_keeps_the_checks_that_passed(node_for: NodeMaker):
    node = node_for(PLAN)
    node.efa_devices(7)
    record = node.boot().record
    assert record
    assert [check.ok for check in record.checks] == [True, True, True, False]


@pytest.mark.parametrize("program", ["neuron-ls", "python3"])
def test_a_program_that_is_not_installed_is_named(program: str, node_for: NodeMaker):
    node = node_for(PLAN)
    node.remove_program(program)
    record = node.boot(attempts=100).record
    assert record
    assert record.state == "failed"
    assert record.reason.startswith(f"{program} is not installed")


def test_a_node_whose_driver_comes_up_late_proves_itself(node_for: NodeMaker):
    node = node_for(PLAN)
    node.neuron_ls(devices_of(PLAN), after_failures=2, stderr=NO_DRIVER)
    boot = node.boot(attempts=3)
    assert boot.record
    assert boot.record.state == "proven", boot.log


def test_a_driver_that_never_comes_up_fails_the_node_with_what_neuron_ls_says(node_for: NodeMaker):
    node = node_for(PLAN)
    node.neuron_ls(devices_of(PLAN), after_failures=100, stderr=NO_DRIVER)
    record = node.boot(attempts=2).record
    assert record
    assert record.state == "failed"
    assert record.reason == f"neuron-ls failed with exit code 1: {NO_DRIVER} [verify the devices]"
    assert node.read("neuron_ls_tries").count("try") == 2


def test_a_failing_setup_script_fails_the_node_with_its_last_line(node_for: NodeMaker):
    node = node_for(with_setup_script('echo starting\necho "no \\"model\\" at C:\\\\ \N{SNOWMAN}" >&2\necho\nexit 3\n'))
    record = node.boot().record
    assert record
    assert record.state == "failed"
    assert record.reason.startswith('the setup script failed with exit code 3: no "model" at C:\\ ???')
    assert all(check.ok for check in record.checks)


def test_the_setup_script_finds_the_environment_of_the_cluster(node_for: NodeMaker):
    node = node_for(with_setup_script('echo "$NEURON_COMPILE_CACHE_URL $TRN_NEURON_CORES $FI_PROVIDER" >"$ROOT/seen"'))
    assert node.boot().exit_code == 0
    assert node.read("seen") == "s3://cluster-cache/neuron-compile-cache 32 efa\n"


def test_the_setup_script_arrives_as_it_was_written(node_for: NodeMaker):
    script = "cat >\"$ROOT/seen\" <<'EOF'\n${x} <{ y }> <% z %> `w` \\\nSETUP_SCRIPT\n\n  SETUP_SCRIPT_\nEOF\n"
    node = node_for(with_setup_script(script))
    assert node.boot().exit_code == 0
    assert node.read("var/lib/trn/setup.sh") == script
    assert node.read("seen") == "${x} <{ y }> <% z %> `w` \\\nSETUP_SCRIPT\n\n  SETUP_SCRIPT_\n"


def test_the_setup_script_does_not_run_on_a_node_that_is_not_as_expected(node_for: NodeMaker):
    node = node_for(with_setup_script('touch "$ROOT/ran"'))
    node.efa_devices(0)
    node.boot()
    assert not (node.root / "ran").exists()


def test_a_step_that_fails_unforeseen_is_reported_with_its_name(node_for: NodeMaker):
    node = node_for(PLAN)
    (node.root / "etc/security/limits.d/99-trn.conf").mkdir()
    record = node.boot().record
    assert record
    assert record.state == "failed"
    assert record.reason.endswith("failed with exit code 1 [raise the limits]")


def test_a_node_that_cannot_write_its_disk_still_reports(node_for: NodeMaker):
    node = node_for(PLAN)
    node.write("var/lib/trn", "a file where the folder should be")
    node.write("var/log/trn-node.log")
    record = node.boot().record
    assert record
    assert record.reason.endswith("[start the log]")


def test_without_the_metadata_service_s_word_cloud_init_tells_the_instance_id(node_for: NodeMaker, aws: AwsStandIn):
    aws.has_instance_id = False
    node = node_for(PLAN)
    node.write("var/lib/cloud/data/instance-id", "i-0fedcba9876543210\n")
    node.boot()
    assert list(aws.records) == ["cluster-records/nodes/i-0fedcba9876543210.json"]


def test_a_node_without_instance_id_ends_with_a_message_in_its_log(node_for: NodeMaker, aws: AwsStandIn):
    aws.has_instance_id = False
    boot = node_for(PLAN).boot()
    assert boot.exit_code != 0
    assert "FAILED: neither the metadata service nor cloud-init tells the instance id" in boot.log


def test_a_record_that_s3_refuses_ends_the_script_after_its_retries(node_for: NodeMaker, aws: AwsStandIn):
    aws.s3_refuses = True
    boot = node_for(PLAN).boot()
    assert boot.exit_code != 0
    assert aws.refusals == ["AccessDenied", "AccessDenied"]
    assert "<Code>AccessDenied</Code>" in boot.log
    assert "FAILED: the record did not reach s3://cluster-records/nodes" in boot.log


def test_no_program_is_given_a_secret_as_an_argument(node_for: NodeMaker):
    node = node_for(PLAN)
    curl = (node.programs / "curl").resolve()
    node.remove_program("curl")
    node.program("curl", f'printf "%s\\n" "$@" >>{node.root}/arguments\nexec {curl} "$@"')
    assert node.boot().exit_code == 0
    arguments = node.read("arguments")
    assert ROLE in arguments
    assert not [secret for secret in SECRETS if secret in arguments]


def test_no_secret_is_in_the_log(node_for: NodeMaker):
    log = node_for(PLAN).boot().log
    assert not [secret for secret in SECRETS if secret in log]


def test_the_profile_holds_what_training_needs(node_for: NodeMaker):
    node = node_for(plan_for("trn2.48xlarge", nodes=4))
    node.boot()
    assert node.read("etc/profile.d/trn.sh").splitlines() == [
        'export PATH="/opt/aws/neuron/bin:/opt/amazon/efa/bin:$PATH"',
        "export NEURON_COMPILE_CACHE_URL=s3://cluster-cache/neuron-compile-cache",
        "export FI_PROVIDER=efa",
        "export FI_EFA_USE_DEVICE_RDMA=1",
        "export NEURON_LOGICAL_NC_CONFIG=2",
        "export TRN_NEURON_CORES=64",
        "export TRN_RENDEZVOUS_PORT=41000",
    ]


@pytest.mark.parametrize(
    ("instance_type", "absent"), [("trn1.2xlarge", "FI_"), ("trn1.32xlarge", "NEURON_LOGICAL_NC_CONFIG")]
)
def test_the_profile_holds_nothing_the_type_does_not_have(instance_type: str, absent: str, node_for: NodeMaker):
    node = node_for(plan_for(instance_type))
    node.boot()
    assert absent not in node.read("etc/profile.d/trn.sh")


@pytest.mark.parametrize(
    ("before", "after"), [("", "41000"), ("2703,9808-9809", "2703,9808-9809,41000"), ("1,41000,5", "1,41000,5")]
)
def test_the_rendezvous_port_joins_the_reserved_ports(before: str, after: str, node_for: NodeMaker):
    node = node_for(PLAN)
    node.write("proc/sys/net/ipv4/ip_local_reserved_ports", before + "\n")
    node.boot()
    assert node.read("proc/sys/net/ipv4/ip_local_reserved_ports") == after + "\n"
    assert node.read("etc/sysctl.d/99-trn.conf") == f"net.ipv4.ip_local_reserved_ports = {after}\n"


def test_a_second_run_changes_nothing_on_the_node(node_for: NodeMaker):
    node = node_for(plan_for("trn2.3xlarge", setup_script="true"))
    written = (
        "etc/profile.d/trn.sh",
        "etc/security/limits.d/99-trn.conf",
        "etc/sysctl.d/99-trn.conf",
        "proc/sys/net/ipv4/ip_local_reserved_ports",
        "opt/aws/neuron/logical_nc_config",
        "var/lib/trn/setup.sh",
    )
    node.boot()
    first = [node.read(path) for path in written]
    second_boot = node.boot()
    assert second_boot.exit_code == 0
    assert [node.read(path) for path in written] == first
