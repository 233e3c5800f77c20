"""Whether the nodes find names in a VPC of the user's own: its attributes, and the resolvers of its DHCP options."""

import ipaddress
from collections.abc import Iterator

from trainium_core.facts import facts
from trainium_core.network.vpc import Vpc
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_of
from trainium_core.problems import SETTING_PREFIX
from trainium_runtime.check_result import CheckResult


def check_dns(plan: Plan, vpc: Vpc, *, has_nat: bool) -> CheckResult:
    """has_nat: whether the nodes reach AWS without private names of endpoints."""
    return worst_of([_attributes(vpc, has_nat=has_nat), *_servers(plan, vpc)])


def _attributes(vpc: Vpc, *, has_nat: bool) -> CheckResult:
    if not vpc.dns_support:
        found = f"AWS's DNS is off in {vpc.vpc_id}: unless yours answers, nodes cannot find S3"
        return CheckResult(outcome="warn", found=found, fix="turn enableDnsSupport on")
    if not vpc.dns_hostnames and not has_nat:
        found = f"enableDnsHostnames is off in {vpc.vpc_id}: private names of endpoints do not work"
        return CheckResult(outcome="warn", found=found, fix="turn enableDnsHostnames on")
    return CheckResult(outcome="pass", found="names are resolved")


def _servers(plan: Plan, vpc: Vpc) -> Iterator[CheckResult]:
    setting, opened = f"{SETTING_PREFIX}dns_servers", plan.network.dns_servers
    if vpc.dns_servers is None:
        yield CheckResult(outcome="unknown", found=f"EC2 does not show the DHCP options of {vpc.vpc_id}")
        return
    if not vpc.dns_servers:
        found = f"the DHCP options of {vpc.vpc_id} name no DNS server; no source says which one nodes then ask"
        yield CheckResult(outcome="warn", found=found, fix="add domain-name-servers, such as AmazonProvidedDNS")
    amazon = {*facts()["dns"]["amazon"], str(ipaddress.IPv4Network(vpc.cidr).network_address + 2)}
    others = [server for server in vpc.dns_servers if server not in amazon]
    if closed := [server for server in others if server not in opened]:
        found = f"nodes would ask the DNS servers {', '.join(closed)} ({vpc.vpc_id}'s DHCP options), which their "
        found += "security group does not let them reach: they could not find S3"
        yield CheckResult(outcome="fail", found=found, fix=f"set {setting} to {','.join(others)}")
    elif others:
        found = f"nodes ask the DNS servers {', '.join(others)}; whether those know the names of AWS, and the private "
        found += "names of endpoints, is not to be seen from here"
        yield CheckResult(outcome="warn", found=found)
    if unused := [server for server in opened if server not in others]:
        found = f"{setting} opens port 53 to {', '.join(unused)}, which {vpc.vpc_id}'s DHCP options do not name"
        yield CheckResult(outcome="warn", found=found, fix="remove what nodes do not ask")
