"""The watch as a whole: what reaches the record, the notice and the jobs, and when.

Real here: the watch, its requests and their signatures. Stand-ins: the clock, /sys, /proc, the kernel's log, the
instance metadata service and S3. Only AWS can show that a driver writes these lines, and that EC2 sends these notices.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.userdata.aws_stand_in import INSTANCE_ID, AwsStandIn
from tests.userdata.test_watch_hardware import DOCUMENTED
from tests.userdata.watch_node import NOON, WatchNode
from trainium_userdata.node.trn_node import files, job_signals, notices
from trainium_userdata.node.trn_node.notices import SIGNAL_SECONDS
from trainium_userdata.node.trn_node.watch import DRAIN_SECONDS

SPOT = '{"action": "terminate", "time": "2026-11-21T12:02:00Z"}'
SPOT_REASON = "EC2 reclaims this Spot Instance: terminate"
ADDRESS = "10.42.0.11"


@pytest.fixture
def node(tmp_path: Path, aws: AwsStandIn, monkeypatch: pytest.MonkeyPatch) -> WatchNode:
    return WatchNode(tmp_path, aws, monkeypatch)


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The notices to jobs, recorded instead of sent as signals."""
    messages: list[str] = []

    def notify(text: str) -> str:
        messages.append(text)
        return ""

    monkeypatch.setattr(job_signals, "notify", notify)
    return messages


def retirement(at: float) -> str:
    return (
        f'[{{"Code": "instance-retirement", "State": "active", "Description": "degraded hardware", '
        f'"NotBefore": "{notices.iso(at)}"}}]'
    )


def test_healthy_node_stays_verified_and_sends_nothing(node: WatchNode):
    node.pass_time(120)
    assert (node.record.state, node.sent, node.notice) == ("verified", None, None)


def test_spot_interruption_drains_the_node_within_seconds(node: WatchNode):
    node.announce(notices.SPOT, SPOT)
    node.pass_time()
    assert (node.record.state, node.record.reason) == ("draining", f"{SPOT_REASON}, 2026-11-21T12:02:00Z")


def test_file_for_jobs_has_the_remaining_time(node: WatchNode):
    node.announce(notices.SPOT, SPOT)
    node.pass_time(30)
    assert node.notice == {"kind": "spot", "reason": SPOT_REASON, "at": "2026-11-21T12:02:00Z", "seconds_left": 95}


def test_restarted_watch_does_not_signal_again(node: WatchNode, signals: list[str]):
    node.announce(notices.SPOT, SPOT)
    node.pass_time()
    node.start()
    node.pass_time(60)
    assert signals == [SPOT_REASON]


def test_node_that_ends_in_weeks_is_verified_with_a_local_notice(node: WatchNode):
    node.announce(notices.MAINTENANCE, retirement(NOON + 14 * 86400))
    node.pass_time()
    assert node.record.state == "verified"
    assert node.notice
    assert node.notice["at"] == "2026-12-05T12:00:00Z"


def test_node_that_ends_within_a_day_drains(node: WatchNode):
    node.announce(notices.MAINTENANCE, retirement(NOON + DRAIN_SECONDS + 60))
    node.pass_time()
    assert node.record.state == "verified"
    node.pass_time(120)
    assert node.record.state == "draining"


def test_jobs_are_signalled_in_time_to_save(node: WatchNode, signals: list[str]):
    node.announce(notices.MAINTENANCE, retirement(NOON + SIGNAL_SECONDS + 60))
    node.pass_time(30)
    assert signals == []
    node.pass_time(60)
    assert len(signals) == 1


def test_cancelled_maintenance_is_withdrawn(node: WatchNode):
    node.announce(notices.MAINTENANCE, retirement(NOON + 3600))
    node.pass_time(10)
    node.announce(notices.MAINTENANCE, "[]")
    node.pass_time(120)
    assert (node.record.state, node.record.reason, node.notice) == ("verified", "", None)
    assert node.sent == node.record


def test_capacity_block_end_in_the_membership_drains_the_node(node: WatchNode, signals: list[str]):
    end = {"kind": "capacity-block-end", "at": "2026-11-21T12:10:00Z", "reason": "the Capacity Block ends"}
    node.membership([(INSTANCE_ID, ADDRESS)], notices=[end])
    node.pass_time()
    assert (node.record.state, node.record.reason) == ("draining", "the Capacity Block ends, 2026-11-21T12:10:00Z")
    assert node.notice
    assert (node.notice["kind"], node.notice["at"]) == ("capacity-block-end", "2026-11-21T12:10:00Z")
    assert signals == ["the Capacity Block ends"]


def test_unavailable_metadata_service_withdraws_nothing(node: WatchNode):
    node.announce(notices.SPOT, SPOT)
    node.pass_time()
    node.aws.failures = 1000
    node.pass_time(60)
    assert node.record.state == "draining"
    assert node.notice


def test_restarted_watch_withdraws_nothing_without_metadata(node: WatchNode):
    node.announce(notices.SPOT, SPOT)
    node.pass_time()
    node.aws.failures = 1000
    node.start()
    node.pass_time(60)
    assert node.record.state == "draining"
    assert node.notice


def test_hardware_error_fails_the_node_with_a_message(node: WatchNode, signals: list[str]):
    node.kernel_says(DOCUMENTED, 4711)
    node.pass_time()
    sentence = "Neuron device 3: SRAM_UNCORRECTABLE_ERROR in the kernel log"
    assert node.sent
    assert (node.sent.state, node.sent.reason) == ("failed", sentence)
    assert node.notice == {"kind": "hardware", "reason": sentence, "at": "", "seconds_left": 0}
    assert signals == [sentence]


def test_later_verification_in_the_same_boot_does_not_clear_a_failure(node: WatchNode):
    node.kernel_says(DOCUMENTED, 4711)
    node.pass_time()
    node.verify()
    node.pass_time()
    assert node.record.state == "failed"


def test_verification_after_a_reboot_replaces_earlier_findings(node: WatchNode):
    node.kernel_says(DOCUMENTED, 4711)
    node.pass_time()
    node.reboot()
    node.pass_time(120)
    assert (node.record.state, node.record.reason) == ("verified", "")


def test_failed_verification_is_never_overwritten(node: WatchNode):
    node.verify("failed", "15 of 16 Neuron devices (missing: device 7)")
    node.announce(notices.SPOT, SPOT)
    node.pass_time(60)
    assert node.record.reason == "15 of 16 Neuron devices (missing: device 7)"


def test_counter_that_starts_again_from_zero_is_compared_with_zero(node: WatchNode):
    for count in (3, 0):
        node.counter(1, "mem_ecc_uncorrected", count)
        node.pass_time(120)
        assert node.record.state == "verified"
    node.counter(1, "mem_ecc_uncorrected", 1)
    node.pass_time(120)
    assert node.record.state == "failed"


def test_increase_while_the_watch_was_stopped_is_noticed(node: WatchNode):
    node.pass_time()
    node.counter(1, "mem_ecc_uncorrected", 1)
    node.start()
    node.pass_time()
    assert node.record.state == "failed"


def test_repairable_errors_drain_the_node_until_the_driver_is_reloaded(node: WatchNode):
    node.pass_time()
    node.counter(0, "mem_ecc_repairable_uncorrected", 2)
    node.pass_time(120)
    assert node.record.state == "draining"
    assert "reload the driver or reboot" in node.record.reason
    node.counter(0, "mem_ecc_repairable_uncorrected", 0)
    node.pass_time(120)
    assert node.record.state == "verified"


def test_flood_of_errors_keeps_other_kinds_and_a_small_state_file(node: WatchNode):
    for number in range(1000):
        node.kernel_says(f"NEURON_HW_ERR=HANG_ON_COLLECTIVES nd-id={number} action=NONE", 2 * number)
        node.kernel_says(f"NEURON_HW_ERR=NEW_ERROR nd-id={number} action=NONE", 2 * number + 1)
    node.kernel_says(DOCUMENTED, 5000)
    node.pass_time()
    assert node.record.state == "failed"
    assert len(files.read("run/trn/watch.json")) < 8192


def test_record_refused_by_s3_is_sent_later(node: WatchNode):
    node.aws.s3_refuses = True
    node.announce(notices.SPOT, SPOT)
    node.pass_time(30)
    assert node.sent is None
    node.aws.s3_refuses = False
    node.pass_time(30)
    assert node.sent == node.record


def test_record_that_does_not_fit_on_the_disk_is_sent_once(node: WatchNode, capsys: pytest.CaptureFixture[str]):
    folder = files.path(files.RECORD).parent
    (folder / f".{files.path(files.RECORD).name}.new").mkdir()
    node.announce(notices.SPOT, SPOT)
    node.pass_time(60)
    assert node.sent
    assert (node.record.state, node.sent.state) == ("verified", "draining")
    assert capsys.readouterr().out.count("record: draining") == 1


def test_clock_set_back_stops_nothing(node: WatchNode):
    node.pass_time(60)
    node.now -= 3600
    node.announce(notices.SPOT, SPOT)
    node.pass_time()
    assert node.record.state == "draining"


@pytest.mark.parametrize("garbage", ["", "{", '{"boot": 3}'])
def test_malformed_files_do_not_end_the_watch(garbage: str, node: WatchNode):
    for name in ("var/lib/trn/record.json", "run/trn/watch.json", "etc/trn/plan.json"):
        files.write(name, garbage)
    node.start()
    node.pass_time(30)
    node.verify()
    node.announce(notices.SPOT, SPOT)
    node.pass_time()
    assert node.record.state == "draining"


def test_command_runs_until_it_is_ended(node: WatchNode):
    node.announce(notices.SPOT, SPOT)
    command = [sys.executable, "-m", "trn_node", "watch"]
    folder = Path(job_signals.__file__).parents[1]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(folder)}, stdout=subprocess.PIPE) as watch:
        assert watch.stdout
        assert watch.stdout.readline()
        for line in watch.stdout:
            if line.startswith(b"record: draining"):
                break
        watch.terminate()
    assert node.record.state == "draining"


def test_record_refused_by_s3_is_sent_by_the_next_watch(node: WatchNode):
    node.aws.s3_refuses = True
    node.announce(notices.SPOT, SPOT)
    node.pass_time(30)
    node.start()
    node.aws.s3_refuses = False
    node.pass_time()
    assert node.sent
    assert (node.sent.state, node.sent) == ("draining", node.record)


def test_error_and_its_end_are_each_logged_once(node: WatchNode, capsys: pytest.CaptureFixture[str]):
    (node.root / "dev/kmsg").unlink()
    node.start()
    node.pass_time(60)
    files.write("dev/kmsg", "")
    node.pass_time(60)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("kernel log")]
    assert len(lines) == 2
    assert lines[1] == "kernel log: works again"
