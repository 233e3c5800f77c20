"""Whether the quotas of addresses, gateways, volumes and network interfaces allow the plan: used + needed <= limit.

Of the network interfaces that the plan needs, only those of nodes are counted. Endpoints, NAT gateways and file systems
need a few more.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from trainium_core.aws.account import AwsAccount
from trainium_core.aws.resource_use import GIB_PER_TIB, UsedAmount
from trainium_core.costs.estimate import stack_cost_items
from trainium_core.engines.registry import ENGINES_WITH_NODES
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.plan.network_layout import network_interfaces
from trainium_core.preflight.finding import worst_result
from trainium_runtime.check_result import CheckResult
from trainium_runtime.errors import NoAccessError, UnavailableError
from trainium_runtime.quota import Quota


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One quota.

    Attributes:
        one: Singular of the counted resource.
        many: Plural of the counted resource.
        need: Computes the amount that a plan needs.
        use: Reads the amount in use outside the cluster.
        by_nodes: Whether a plan with fewer nodes needs less.
    """

    one: str
    many: str
    need: Callable[[Plan], float]
    use: Callable[[Plan, AwsAccount], UsedAmount]
    by_nodes: bool = False


def check_limits(plan: Plan, account: AwsAccount) -> CheckResult | None:
    """Check the quotas; None if the plan creates nothing that they count.

    Raises:
        NoAccessError: No call to AWS works. Other errors make the result unknown.
    """
    needs = {key: need for key, limit in LIMITS.items() if (need := limit.need(plan))}
    if not needs:
        return None
    with ThreadPoolExecutor(2 * len(needs)) as threads:
        used_quotas = {
            key: (
                threads.submit(account.quotas.quota, facts()["limits"][key]["service"], facts()["limits"][key]["code"]),
                threads.submit(LIMITS[key].use, plan, account),
            )
            for key in needs
        }
    judged: list[CheckResult] = []
    unanswered: list[CheckResult] = []
    for key, (quota, use) in used_quotas.items():
        try:
            judged.append(judge_limit(key, plan, quota=quota.result(), use=use.result()))
        except NoAccessError:
            raise
        except UnavailableError as error:
            unanswered.append(CheckResult(outcome="unknown", found=error.reason, fix=error.remedy))
    if judged:
        of_all = worst_result(judged)
        judged = [replace(of_all, found=f"used by others: {of_all.found}")]
    return worst_result([*judged, *dict.fromkeys(unanswered)])


def judge_limit(key: str, plan: Plan, *, quota: Quota | None, use: UsedAmount) -> CheckResult:
    """Check whether a quota has room for the plan.

    Args:
        key: A key of LIMITS.
        plan: The plan.
        quota: The quota; None if Service Quotas does not have it.
        use: The use of the quota outside the cluster.

    Raises:
        UnavailableError: Service Quotas does not have the quota.
    """
    limit, need, fact = LIMITS[key], LIMITS[key].need(plan), facts()["limits"][key]
    if quota is None:
        raise UnavailableError(f"Service Quotas in {plan.region} has no quota {fact['code']}, {fact['name']}")
    used = f"{'' if use.complete else 'at least '}{_number(use.amount)}"
    found, needed = f"{used} of {_counted(quota.limit, limit)}", _counted(need, limit)
    if use.amount + need > quota.limit:
        wanted = f"{math.ceil(use.amount + need)} for {fact['code']}, {fact['name']} (service {fact['service']})"
        ways = [f"request {wanted} from Service Quotas", *_ways(limit, plan, quota, use)]
        return CheckResult(outcome="fail", found=found, needed=needed, fix="; or ".join(ways))
    return CheckResult(outcome="pass" if use.complete else "unknown", found=found, needed=needed)


def _ways(limit: Limit, plan: Plan, quota: Quota, use: UsedAmount) -> Iterator[str]:
    """Alternatives to a higher quota."""
    if not limit.by_nodes:
        yield "use an existing VPC: trn:vpc_id"
    elif fitting := math.floor(max(0, quota.limit - use.amount) / (limit.need(plan) / plan.nodes)):
        yield f"set trn:nodes to {fitting}"


def _counted(amount: float, limit: Limit) -> str:
    return f"{_number(amount)} {limit.one if amount == 1 else limit.many}"


def _number(amount: float) -> str:
    """A number with at most two decimals."""
    return f"{round(amount, 2):.15g}"


def _billed(plan: Plan, product: str) -> float:
    """The amount of a product for which the stacks are billed."""
    return float(sum(item.quantity for item in stack_cost_items(plan) if item.item.product == product))


def _gp3_tib(plan: Plan) -> float:
    return _billed(plan, "gp3-storage") / GIB_PER_TIB


def _interfaces(plan: Plan) -> float:
    return plan.nodes * len(network_interfaces(plan)) if {*ENGINES_WITH_NODES} & {*plan.stacks} else 0


LIMITS: Mapping[str, Limit] = {
    "elastic_ips": Limit(
        one="Elastic IP",
        many="Elastic IPs",
        need=lambda plan: _billed(plan, "public-ipv4"),
        use=lambda plan, account: account.resource_use.elastic_ips_excluding(plan.cluster_name),
    ),
    "nat_gateways": Limit(
        one="NAT gateway in the zone",
        many="NAT gateways in the zone",
        need=lambda plan: _billed(plan, "nat-gateway"),
        use=lambda plan, account: account.resource_use.nat_gateways_excluding(plan.cluster_name, zone_id=plan.zone_id),
    ),
    "gp3_storage": Limit(
        one="TiB of gp3 storage",
        many="TiB of gp3 storage",
        need=_gp3_tib,
        use=lambda plan, account: account.resource_use.gp3_tib_excluding(plan.cluster_name),
        by_nodes=True,
    ),
    "network_interfaces": Limit(
        one="network interface",
        many="network interfaces",
        need=_interfaces,
        use=lambda plan, account: account.resource_use.network_interfaces_excluding(plan.cluster_name),
        by_nodes=True,
    ),
}
"""Limits by their keys in facts.toml."""
