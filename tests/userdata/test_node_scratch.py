"""The local disks become /scratch, and data that may still be needed is never overwritten.

All programs that access disks are stand-ins: the tests show which of them are called, and which never.
"""

from pathlib import Path

import pytest

from tests.userdata.booting_node import BootingNode, Run
from tests.userdata.conftest import NodeMaker
from tests.userdata.plans import plan_for

FOUR, ONE = plan_for("trn1.32xlarge"), plan_for("trn2.3xlarge")
BY_ID = "dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_AWS{}"
DESTRUCTIVE = ("mdadm --create", "mkfs", "vgcreate", "lvcreate")


def with_disks(node: BootingNode, held: str = "") -> BootingNode:
    """A node with its disks, which have this content, and with mdadm and XFS as on the images."""
    node.install_copy()
    for number in range(node.plan.type.nvme_disks):
        node.write(f"dev/nvme{number + 1}n1")
        link = node.root / BY_ID.format(number)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(node.root / f"dev/nvme{number + 1}n1")
        # The same disk by the name of its namespace, and a partition.
        Path(f"{link}_1").symlink_to(node.root / f"dev/nvme{number + 1}n1")
        Path(f"{link}-part1").symlink_to(node.root / f"dev/nvme{number + 1}n1")
    for name in ("mdadm", "mkfs.xfs"):
        node.record_calls(name)
    node.program("lsblk", f'echo "disk {held}"')
    return node


def disks(node: BootingNode) -> str:
    return " ".join(f"{node.root}/dev/nvme{number + 1}n1" for number in range(node.plan.type.nvme_disks))


def why_not(node: BootingNode) -> str:
    """The later message of the verification about the local disks."""
    return node.read("run/trn/scratch").strip()


def changes(run: Run) -> list[str]:
    return [call for call in run.calls if call.startswith((*DESTRUCTIVE, "mount"))]


def test_several_disks_are_striped(node_for: NodeMaker):
    node = with_disks(node_for(FOUR))
    run = node.boot()
    assert run.exit_code == 0, run.output
    assert changes(run) == [
        f"mdadm --create --quiet --run {node.root}/dev/md/trn-scratch --homehost=any --name=trn-scratch --level=0 "
        f"--raid-devices=4 {disks(node)}",
        f"mkfs.xfs -q -K -L trn-scratch {node.root}/dev/md/trn-scratch",
        f"mount -o noatime {node.root}/dev/md/trn-scratch {node.root}/scratch",
    ]


def test_single_disk_is_not_striped(node_for: NodeMaker):
    node = with_disks(node_for(ONE))
    assert changes(node.boot()) == [
        f"mkfs.xfs -q -K -L trn-scratch {disks(node)}",
        f"mount -o noatime {disks(node)} {node.root}/scratch",
    ]


@pytest.mark.parametrize("held", ["LVM2_member", "ext4 /data", "/mnt", "linux_raid_member"])
def test_disk_with_any_content_is_not_changed(held: str, node_for: NodeMaker):
    node = with_disks(node_for(FOUR), held)
    run = node.boot()
    assert run.exit_code == 0, run.output
    assert changes(run) == []
    assert why_not(node) == f"the local disk {disks(node).split()[0]} is not blank ({held}); it was not changed"


def test_existing_file_system_is_mounted_after_a_reboot(node_for: NodeMaker):
    node = with_disks(node_for(FOUR), "linux_raid_member")
    node.program("blkid", '[[ "$1" == -L ]] && echo /dev/md127')
    assert changes(node.boot()) == [f"mount -o noatime /dev/md127 {node.root}/scratch"]


def test_unassembled_stripe_is_assembled_again(node_for: NodeMaker):
    node = with_disks(node_for(FOUR), "linux_raid_member")
    node.program("blkid", '[[ "$1" != -L ]]')
    node.record_calls("mdadm", '[[ $1 != --assemble ]] || mkdir -p "$ROOT/dev/md/trn-scratch"')
    run = node.boot()
    assert f"mdadm --assemble --quiet {node.root}/dev/md/trn-scratch {disks(node)}" in run.calls
    assert changes(run) == [f"mount -o noatime {node.root}/dev/md/trn-scratch {node.root}/scratch"]


def test_disks_are_striped_by_lvm_without_mdadm(node_for: NodeMaker):
    node = with_disks(node_for(FOUR))
    node.without("mdadm")
    node.record_calls("vgcreate")
    node.record_calls("lvcreate")
    assert [call.split()[0] for call in changes(node.boot())] == ["vgcreate", "lvcreate", "mkfs.xfs", "mount"]


def test_disks_are_striped_by_btrfs_without_lvm(node_for: NodeMaker):
    node = with_disks(node_for(FOUR))
    node.without("mdadm")
    node.record_calls("mkfs.btrfs")
    assert changes(node.boot())[0].endswith(f"--data raid0 --metadata raid0 {disks(node)}")


def test_missing_striping_tools_are_reported(node_for: NodeMaker):
    node = with_disks(node_for(FOUR))
    node.without("mdadm")
    assert node.boot().exit_code == 0
    assert why_not(node) == "mdadm, lvcreate or mkfs.btrfs is needed to stripe 4 local disks, and none is installed"


def test_disk_that_cannot_be_formatted_does_not_fail_the_node(node_for: NodeMaker):
    node = with_disks(node_for(ONE))
    node.record_calls("mkfs.xfs", "exit 1")
    run = node.boot()
    assert (run.exit_code, "trn-node verify" in run.calls) == (0, True), run.output
    assert why_not(node) == "the local disks could not be prepared; see /var/log/trn-node.log"


def test_image_gets_time_to_mount_disks_itself(node_for: NodeMaker):
    node = with_disks(node_for(FOUR))
    node.record_calls("systemctl", '[[ "$1" != start ]] || touch "$ROOT/mounted"')
    node.program("mountpoint", '[[ "$2" == "$ROOT/opt/dlami/nvme" && -e "$ROOT/mounted" ]]')
    run = node.boot()
    assert "systemctl start dlami-nvme.service" in run.calls
    assert changes(run) == [f"mount --bind {node.root}/opt/dlami/nvme {node.root}/scratch"]
    assert (node.root / "scratch").stat().st_mode & 0o7777 == 0o1777
