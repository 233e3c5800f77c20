"""Whether an existing VPC has addresses, DNS and routes for the nodes, or the account has room for new VPCs."""

import ipaddress
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from trainium_core.aws.account import AwsAccount
from trainium_core.aws.network import RouteTable, Subnet, Vpc, VpcEndpoint
from trainium_core.engines.registry import plan_engines
from trainium_core.facts import facts
from trainium_core.naming import SESSION_SERVICES
from trainium_core.plan import Plan
from trainium_core.plan.network_layout import addresses_needed
from trainium_core.preflight.endpoint_policy_check import check_s3_policies, check_session_policies
from trainium_core.preflight.finding import worst_result
from trainium_core.problems import SETTING_PREFIX
from trainium_runtime.check_result import CheckResult


def check_dns(plan: Plan, vpc: Vpc, *, has_nat: bool) -> CheckResult:
    """Check whether nodes can resolve AWS names.

    Args:
        plan: The plan.
        vpc: The existing VPC.
        has_nat: Whether the nodes reach AWS without private names of endpoints.
    """
    return worst_result([_attributes(vpc, has_nat=has_nat), *_servers(plan, vpc)])


def _attributes(vpc: Vpc, *, has_nat: bool) -> CheckResult:
    if not vpc.dns_support:
        found = f"AWS's DNS is off in {vpc.vpc_id}: without another DNS server, nodes cannot resolve the name of S3"
        return CheckResult(outcome="warn", found=found, fix="turn enableDnsSupport on")
    if not vpc.dns_hostnames and not has_nat:
        found = f"enableDnsHostnames is off in {vpc.vpc_id}: private names of endpoints do not work"
        return CheckResult(outcome="warn", found=found, fix="turn enableDnsHostnames on")
    return CheckResult(outcome="pass", found="AWS's DNS is on")


def _servers(plan: Plan, vpc: Vpc) -> Iterator[CheckResult]:
    setting, allowed = f"{SETTING_PREFIX}dns_servers", plan.network.dns_servers
    if vpc.dns_servers is None:
        yield CheckResult(outcome="unknown", found=f"EC2 did not return the DHCP options of {vpc.vpc_id}")
        return
    if not vpc.dns_servers:
        found = f"the DHCP options of {vpc.vpc_id} name no DNS server; which server nodes then use is not documented"
        yield CheckResult(outcome="warn", found=found, fix="add domain-name-servers, such as AmazonProvidedDNS")
    amazon = {*facts()["dns"]["amazon"], str(ipaddress.IPv4Network(vpc.cidr).network_address + 2)}
    others = [server for server in vpc.dns_servers if server not in amazon]
    if closed := [server for server in others if server not in allowed]:
        found = f"nodes would use the DNS servers {', '.join(closed)} of the DHCP options of {vpc.vpc_id}, which the "
        found += "nodes' security group does not allow: they could not resolve the name of S3"
        yield CheckResult(outcome="fail", found=found, fix=f"set {setting} to {','.join(others)}")
    elif others:
        found = f"nodes use the DNS servers {', '.join(others)}; whether these resolve AWS names and private "
        found += "endpoint names cannot be checked here"
        yield CheckResult(outcome="warn", found=found)
    if unused := [server for server in allowed if server not in others]:
        found = f"{setting} opens port 53 to {', '.join(unused)}, which the DHCP options of {vpc.vpc_id} do not name"
        yield CheckResult(outcome="warn", found=found, fix="remove the servers that nodes do not use")


@dataclass(frozen=True, kw_only=True)
class _ExistingNetwork:
    """The existing network of the nodes. `held_addresses`: number of addresses in use by nodes of the same cluster."""

    vpc: Vpc
    subnet: Subnet
    table: RouteTable
    endpoints: Sequence[VpcEndpoint]
    held_addresses: int

    @property
    def has_nat(self) -> bool:
        return (self.table.default_target or "").startswith("nat-")

    @property
    def has_unverifiable_target(self) -> bool:
        """Whether the default route has a target other than a NAT or internet gateway, which cannot be checked."""
        return self.table.default_target is not None and not self.table.default_target.startswith(("nat-", "igw-"))

    def interfaces(self, service: str) -> Sequence[VpcEndpoint]:
        """Interface endpoints for a service, with private DNS."""
        return [e for e in self.endpoints if e.service == service and e.kind == "interface" and e.private_dns]

    def existing_s3_endpoints(self, plan: Plan) -> Sequence[VpcEndpoint]:
        """The endpoints for S3, except the cluster's own, which has the default policy in an existing VPC."""
        endpoints = [*self.s3_gateways, *self.interfaces("s3")]
        return [endpoint for endpoint in endpoints if endpoint.cluster != plan.cluster_name]

    @property
    def s3_gateways(self) -> Sequence[VpcEndpoint]:
        """The S3 gateway endpoints of the subnet's route table."""
        return [
            endpoint
            for endpoint in self.endpoints
            if endpoint.service == "s3"
            and endpoint.kind == "gateway"
            and self.table.route_table_id in endpoint.route_table_ids
        ]


def check_network(plan: Plan, account: AwsAccount) -> CheckResult | None:
    """Check the network; None if no stack of the plan is in a VPC.

    Each stack in a VPC creates a VPC, unless trn:vpc_id is set.
    """
    vpcs = sum(engine.needs_vpc(plan) for engine in plan_engines(plan))
    if not vpcs:
        return None
    if plan.network.vpc_id is None or plan.network.subnet_id is None:
        return _room_for_vpcs(vpcs, plan, account)
    network, vpc_id, subnet_id = account.network, plan.network.vpc_id, plan.network.subnet_id
    with ThreadPoolExecutor() as threads:
        vpc = threads.submit(network.vpc, vpc_id)
        subnet = threads.submit(network.subnet, subnet_id)
        table = threads.submit(network.route_table, subnet_id=subnet_id, vpc_id=vpc_id)
        endpoints = threads.submit(network.endpoints, vpc_id)
        held = threads.submit(network.addresses_in_use, plan.cluster_name, subnet_id=subnet_id)
    return _judge(plan, vpc.result(), subnet.result(), table.result(), endpoints.result(), held.result())


def _room_for_vpcs(count: int, plan: Plan, account: AwsAccount) -> CheckResult:
    needed = f"{count} VPC{'s' if count > 1 else ''}"
    code = facts()["vpcs"]["quota_code"]
    with ThreadPoolExecutor() as threads:
        limit = threads.submit(account.quotas.quota, "vpc", code)
        others = threads.submit(account.network.vpcs_excluding, plan.cluster_name)
    quota, used = limit.result(), others.result()
    if quota is None:
        return CheckResult(
            outcome="unknown", found=f"{used} VPCs; Service Quotas in {plan.region} has no quota {code}", needed=needed
        )
    found = f"{used} of {quota.limit:g} VPCs are in use, not counting the plan's"
    if used + count <= quota.limit:
        return CheckResult(outcome="pass", found=found, needed=needed)
    fix = f"request {used + count} for {code} (service vpc) from Service Quotas, or use an existing VPC: trn:vpc_id"
    return CheckResult(outcome="fail", found=found, needed=needed, fix=fix)


def _judge(
    plan: Plan,
    vpc: Vpc | None,
    subnet: Subnet | None,
    table: RouteTable | None,
    endpoints: Sequence[VpcEndpoint],
    held: int,
) -> CheckResult:
    if vpc is None:
        found = f"{plan.network.vpc_id} does not exist in {plan.region}"
        return CheckResult(outcome="fail", found=found, fix="set trn:vpc_id to an existing VPC")
    if subnet is None:
        found = f"{plan.network.subnet_id} does not exist in {plan.region}"
        return CheckResult(outcome="fail", found=found, fix=f"set trn:subnet_id to a subnet of {vpc.vpc_id}")
    if subnet.vpc_id != vpc.vpc_id:
        found = f"{subnet.subnet_id} is in {subnet.vpc_id}, not in {vpc.vpc_id}"
        fix = f"set trn:vpc_id to {subnet.vpc_id}, or trn:subnet_id to a subnet of {vpc.vpc_id}"
        return CheckResult(outcome="fail", found=found, fix=fix)
    if table is None:
        return CheckResult(outcome="unknown", found=f"EC2 returned no route table for {subnet.subnet_id}")
    network = _ExistingNetwork(vpc=vpc, subnet=subnet, table=table, endpoints=endpoints, held_addresses=held)
    results = [
        _addresses(plan, network),
        check_dns(plan, vpc, has_nat=network.has_nat),
        _route_to_s3(plan, network),
        check_s3_policies(plan, network.existing_s3_endpoints(plan)),
    ]
    if _has_nodes(plan):
        results.append(_session_access(plan, network))
        results.append(check_session_policies(e for service in SESSION_SERVICES for e in network.interfaces(service)))
    return worst_result(results)


def _has_nodes(plan: Plan) -> bool:
    """Whether a stack of the plan has nodes, which Session Manager reaches. Instances of SageMaker are none."""
    return any(engine.has_nodes for engine in plan_engines(plan))


def _addresses(plan: Plan, network: _ExistingNetwork) -> CheckResult:
    need, subnet = addresses_needed(plan), network.subnet
    free = subnet.free_addresses + network.held_addresses
    found = f"{subnet.subnet_id} in {subnet.zone_id} has {subnet.free_addresses} free addresses"
    if network.held_addresses:
        found += f", and {network.held_addresses} more are in use by the cluster's nodes"
    needed = f"{need} address{'' if need == 1 else 'es'}"
    if need <= free:
        return CheckResult(outcome="pass", found=found, needed=needed)
    fix = "set trn:subnet_id to a larger subnet, or reduce trn:nodes"
    if plan.uses_efa and plan.network.secondary_interface_type == "efa" and plan.type.efa_interfaces > 1:
        fix += ", or set trn:secondary_interface_type to efa-only"
    return CheckResult(outcome="fail", found=found, needed=needed, fix=fix)


def _route_to_s3(plan: Plan, network: _ExistingNetwork) -> CheckResult:
    table = network.table.route_table_id
    if plan.network.route_table_id is not None:
        return _room_for_s3_gateway(plan, network)
    if network.s3_gateways:
        return CheckResult(outcome="pass", found=f"{table} leads to S3 through a gateway endpoint")
    if network.has_nat:
        return CheckResult(outcome="pass", found=f"{table} leads to S3 through {network.table.default_target}")
    if network.interfaces("s3"):
        return CheckResult(outcome="pass", found="S3 has an interface endpoint")
    fix = f"set trn:route_table_id to {table}: an S3 gateway endpoint, which is free, is added to it"
    needed = f"a route to S3, {'to which nodes write their records' if _has_nodes(plan) else 'which training jobs use'}"
    if network.has_unverifiable_target:
        found = f"{table} leads to {network.table.default_target}; whether that leads to S3 cannot be checked here"
        return CheckResult(outcome="unknown", found=found, needed=needed, fix=fix)
    return CheckResult(outcome="fail", found=f"{table} does not lead to S3", needed=needed, fix=fix)


def _room_for_s3_gateway(plan: Plan, network: _ExistingNetwork) -> CheckResult:
    table = network.table.route_table_id
    if plan.network.route_table_id != table:
        found = f"the route table of {network.subnet.subnet_id} is {table}, not {plan.network.route_table_id}"
        return CheckResult(outcome="fail", found=found, fix=f"set trn:route_table_id to {table}")
    if any(endpoint.cluster != plan.cluster_name for endpoint in network.s3_gateways):
        found = f"{table} already leads to S3 through a gateway endpoint, and cannot have a second"
        return CheckResult(outcome="fail", found=found, fix="remove trn:route_table_id")
    return CheckResult(outcome="pass", found=f"{table} can have an S3 gateway endpoint")


def _session_access(plan: Plan, network: _ExistingNetwork) -> CheckResult:
    missing = [service for service in SESSION_SERVICES if not network.interfaces(service)]
    if network.has_nat or not missing:
        return CheckResult(outcome="pass", found="Session Manager is reachable")
    without = f"{plan.network.vpc_id} has no interface endpoint with private DNS for {' and '.join(missing)}"
    if network.has_unverifiable_target:
        target = network.table.default_target
        found = f"{without}; whether {target} leads to Session Manager cannot be checked here"
    else:
        found = f"no sessions: {without}, and the subnet has no route to a NAT gateway"
    fix = f"add interface endpoints for {' and '.join(missing)}, or a NAT gateway"
    return CheckResult(outcome="warn", found=found, fix=fix)
