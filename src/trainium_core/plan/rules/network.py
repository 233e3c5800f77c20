"""Rules for the network, new or existing."""

import ipaddress
from collections.abc import Iterator

from trainium_core.plan.rules.rule import Rule, rule_decorator
from trainium_core.plan.settings_by_key import SETTINGS, setting_value
from trainium_core.plan.values import PlanValues
from trainium_core.problems import Problem

NETWORK_RULES: list[Rule] = []
rule = rule_decorator(NETWORK_RULES)


def overlaps_docker(cidr: str) -> bool:
    """Whether a block overlaps with Docker's default bridge, which exists on every node."""
    return ipaddress.IPv4Network(cidr).overlaps(ipaddress.IPv4Network("172.17.0.0/16"))


@rule("vpc_id", "subnet_id")
def existing_vpc_requires_subnet(plan: PlanValues) -> Iterator[Problem]:
    if plan.network.vpc_id is not None and plan.network.subnet_id is None:
        allowed = SETTINGS["subnet_id"].form.allowed
        fix = f"name the subnet of {plan.network.vpc_id} for the nodes, in a zone that offers the type"
        yield Problem(key="subnet_id", got=None, allowed=allowed, fix=fix)


@rule("vpc_id", "subnet_id", "route_table_id")
def network_ids_require_vpc(plan: PlanValues) -> Iterator[Problem]:
    for key in ("subnet_id", "route_table_id"):
        got = setting_value(plan, key)
        if plan.network.vpc_id is None and got is not None:
            fix = f"set trn:vpc_id too, or remove trn:{key}"
            yield Problem(key=key, got=got, allowed="no value without trn:vpc_id", fix=fix)


@rule("vpc_id", "dns_servers")
def dns_servers_require_existing_vpc(plan: PlanValues) -> Iterator[Problem]:
    if plan.network.vpc_id is None and plan.network.dns_servers:
        fix = "remove it: nodes in a new VPC use Amazon's DNS server"
        got = ",".join(plan.network.dns_servers)
        yield Problem(key="dns_servers", got=got, allowed="no value without trn:vpc_id", fix=fix)


@rule("vpc_id", "egress")
def egress_requires_new_vpc(plan: PlanValues) -> Iterator[Problem]:
    if plan.network.vpc_id is not None and plan.network.egress is not None:
        fix = "remove it: an existing VPC keeps its endpoints and gateways"
        yield Problem(key="egress", got=plan.network.egress, allowed="no value with trn:vpc_id", fix=fix)


@rule("vpc_cidr", "vpc_id")
def vpc_cidr_is_usable(plan: PlanValues) -> Iterator[Problem]:
    if plan.network.vpc_id is not None and plan.network.vpc_cidr != SETTINGS["vpc_cidr"].default:
        fix = "remove it: an existing VPC already has addresses"
        yield Problem(key="vpc_cidr", got=plan.network.vpc_cidr, allowed="no value with trn:vpc_id", fix=fix)
    elif overlaps_docker(plan.network.vpc_cidr):
        fix = "choose another block: 172.17.0.0/16 is Docker's own bridge on every node"
        yield Problem(key="vpc_cidr", got=plan.network.vpc_cidr, allowed=SETTINGS["vpc_cidr"].form.allowed, fix=fix)
