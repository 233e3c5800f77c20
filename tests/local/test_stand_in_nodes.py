"""How a stand-in reads user data and makes the record of a node, without a server."""

import gzip
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart

import pytest

from trainium_core.catalog.catalog import builtin_catalog
from trainium_local.stand_ins.jobs import unreported_end
from trainium_local.stand_ins.nodes import WRITER, node_record, report_url
from trainium_wire.node_record import NodeRecord

SCRIPT = b"#!/bin/bash\nset -e\n  export TRN_REPORT_URL='s3://bucket/prefix/'\n"


def multipart(script: bytes) -> bytes:
    message = MIMEMultipart()
    message.attach(MIMEApplication(script, "x-shellscript"))
    return message.as_bytes()


@pytest.mark.parametrize(
    "user_data",
    [
        SCRIPT,
        gzip.compress(SCRIPT),
        multipart(SCRIPT),
        multipart(gzip.compress(SCRIPT)),
        b"TRN_REPORT_URL=s3://bucket/prefix",
    ],
    ids=["plain", "compressed", "part", "compressed part", "unquoted"],
)
def test_report_url_is_found_in_user_data_of_each_format(user_data: bytes) -> None:
    assert report_url(user_data) == "s3://bucket/prefix"


@pytest.mark.parametrize(
    "user_data",
    [b"", b"#!/bin/bash\n", b"# TRN_REPORT_URL=s3://b/p\n", b"\xff\xfe\x00"],
    ids=["nothing", "no line", "a comment", "not text"],
)
def test_user_data_without_report_line_has_no_url(user_data: bytes) -> None:
    assert report_url(user_data) is None


NEURON_DEVICES = ("neuron-devices", "neuron-ls shows {} of {} Neuron devices (missing: device {})")
GPUS = ("gpus", "nvidia-smi shows {} of {} GPUs (missing: GPU {})")


@pytest.mark.parametrize("name", sorted(builtin_catalog()))
def test_record_has_devices_of_catalogue_and_names_its_writer(name: str) -> None:
    kind = builtin_catalog()[name]
    devices = kind.devices
    check, shown = GPUS if kind.is_gpu else NEURON_DEVICES
    verified, failed = (node_record("i-1", name, failed=one) for one in (False, True))
    assert (verified.state, verified.reason) == ("verified", "")
    assert [one.found for one in verified.checks if one.name == check] == [str(devices)]
    assert failed.reason == shown.format(devices - 1, devices, devices - 1)
    for record in (verified, failed):
        assert NodeRecord.from_json(record.to_json()) == record
        assert WRITER in record.checks


def test_node_of_unknown_type_can_fail() -> None:
    record = node_record("i-1", "m5.large", failed=True)
    assert (record.state, record.reason) == (
        "failed",
        "the stand-in was set to fail; m5.large is not in the catalogue",
    )


@pytest.mark.parametrize(("exit_codes", "end"), [([0, 3, 4], ("failed", "3")), ([0, 0], ("node-lost", "i-1"))])
def test_unreported_end_has_the_first_exit_code_of_a_failure(exit_codes: list[int], end: tuple[str, str]) -> None:
    record = unreported_end(exit_codes, "i-1")
    assert record["result"] == end[0]
    assert end[1] in record["reason"]
