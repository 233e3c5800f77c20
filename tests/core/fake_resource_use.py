"""Use of the quotas in the section `limits` of facts.toml, in memory. By default nothing is used."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Self

from trainium_core.aws.resource_use import UsedAmount
from trainium_core.facts import facts
from trainium_runtime.quota import Quota

BY_CODE = {limit["code"]: key for key, limit in facts()["limits"].items() if isinstance(limit, dict)}
"""The limits of the facts, by the codes of their quotas."""


@dataclass(kw_only=True)
class FakeResourceUse:
    """Use of quotas, by their keys in facts.toml.

    Attributes:
        limits: Quotas that differ from AWS's default; None for a quota that does not exist.
        in_use: The amounts in use.
        uncounted: Keys of the quotas whose use was not counted completely.
        clusters_of_pcs: Names of the AWS PCS clusters.
    """

    limits: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    in_use: Mapping[str, float] = field(default_factory=dict[str, float])
    uncounted: Collection[str] = ()
    clusters_of_pcs: Collection[str] = ()

    @property
    def resource_use(self) -> Self:
        return self

    def quota(self, service: str, code: str) -> Quota | None:
        if code not in BY_CODE:
            return super().quota(service, code)
        key = BY_CODE[code]
        assert service == facts()["limits"][key]["service"]
        self._check_available("limits")
        limit = self.limits.get(key, facts()["limits"][key]["default"])
        return None if limit is None else Quota(code=code, name=facts()["limits"][key]["name"], limit=limit)

    def _use(self, key: str, cluster: str) -> UsedAmount:
        assert cluster == "trn-pilot"
        self._check_available(key)
        return UsedAmount(amount=self.in_use.get(key, 0), complete=key not in self.uncounted)

    def elastic_ips_excluding(self, cluster: str) -> UsedAmount:
        return self._use("elastic_ips", cluster)

    def nat_gateways_excluding(self, cluster: str, *, zone_id: str | None) -> UsedAmount:
        assert zone_id is not None
        return self._use("nat_gateways", cluster)

    def gp3_tib_excluding(self, cluster: str) -> UsedAmount:
        return self._use("gp3_storage", cluster)

    def network_interfaces_excluding(self, cluster: str) -> UsedAmount:
        return self._use("network_interfaces", cluster)

    def pcs_clusters(self) -> Collection[str]:
        self._check_available("pcs")
        return self.clusters_of_pcs
