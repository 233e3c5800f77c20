"""The lab's network: one switch in an isolated network namespace, and a cable for each node.

The lab runs inside that namespace. Every address of 10.0.0.0/8 is on the one switch, so that a node can have the
address that EC2 gave its instance.
"""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

from tools.lab.shell import run

SERVICES = "10.255.255.1"
"""The address of the services: AWS by its names, and DNS. Also every node's default gateway, which forwards nothing."""

METADATA = "169.254.169.254"
PREFIX_LENGTH = 8
BRIDGE = "trnlab-switch"


@contextmanager
def switch(folder: Path) -> Generator[None]:
    """Make a switch with the services' addresses, and DNS that resolves all names below amazonaws.com and no others."""
    run("ip", "link", "set", "lo", "up")
    # `ip` keeps the names of namespaces in the first folder, nspawn its sockets in the second. Hide the machine's.
    for place in (Path("/run/netns"), Path("/run/systemd/nspawn")):
        place.mkdir(parents=True, exist_ok=True)
        run("mount", "-t", "tmpfs", "trnlab", place)
    # Set the bridge's MAC address. Otherwise it is the lowest of the cables', which changes when a node is unplugged.
    run("ip", "link", "add", BRIDGE, "address", "02:00:00:00:00:01", "type", "bridge")
    run("ip", "addr", "add", f"{SERVICES}/{PREFIX_LENGTH}", "dev", BRIDGE)
    run("ip", "addr", "add", f"{METADATA}/32", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    names = subprocess.Popen(
        [
            "dnsmasq",
            "--keep-in-foreground",
            "--conf-file=/dev/null",
            f"--listen-address={SERVICES}",
            "--bind-interfaces",
            "--no-resolv",
            "--no-hosts",
            "--user=root",
            "--pid-file=",
            f"--address=/amazonaws.com/{SERVICES}",
            f"--log-facility={folder / 'dns.log'}",
        ]
    )
    resolver = folder / "resolv.conf"
    resolver.write_text(f"nameserver {SERVICES}\n")
    # The lab's own programs use the same DNS: another name fails at once.
    run("mount", "--bind", resolver, Path("/etc/resolv.conf").resolve())
    try:
        yield
    finally:
        names.terminate()
        names.wait()


def connect(name: str, address: str) -> None:
    """Make a network namespace for a node, and connect it to the switch.

    Args:
        name: Name of the namespace.
        address: Address of its eth0.
    """
    run("ip", "netns", "add", name)
    run("ip", "link", "add", cable(address), "type", "veth", "peer", "name", "eth0", "netns", name)
    run("ip", "link", "set", cable(address), "master", BRIDGE, "up")
    for words in (
        ("link", "set", "lo", "up"),
        ("addr", "add", f"{address}/{PREFIX_LENGTH}", "dev", "eth0"),
        ("link", "set", "eth0", "up"),
        ("route", "add", "default", "via", SERVICES),
    ):
        run("ip", "-n", name, *words)


def disconnect(name: str, address: str) -> None:
    # Delete the link explicitly: the kernel removes a namespace with a delay, and another node may reuse the address.
    run("ip", "link", "del", cable(address))
    run("ip", "netns", "del", name)


def cable(address: str) -> str:
    """The name of the switch's end of a node's cable."""
    return f"c{int(IPv4Address(address)):08x}"
