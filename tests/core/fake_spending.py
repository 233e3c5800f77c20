"""An account whose spending a test defines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal

from tests.core.fake_audit import CLUSTER, NOW, FakeAuditedAccount
from tests.core.fake_capacity import FakeCapacity
from trainium_core.audit.stack_record import AuditedStack
from trainium_core.spending.node_runs import ScalingActivity
from trainium_runtime.errors import UnavailableError

GROUP = ("AWS::AutoScaling::AutoScalingGroup", "group")
FIRST, SECOND = "i-0000000000000000a", "i-0000000000000000b"


def launched(instance_id: str, hours_ago: float, *, succeeded: bool = True) -> ScalingActivity:
    return _activity(f"Launching a new EC2 instance: {instance_id}", hours_ago, succeeded=succeeded)


def terminated(instance_id: str, hours_ago: float) -> ScalingActivity:
    return _activity(f"Terminating EC2 instance: {instance_id}", hours_ago, succeeded=True)


def _activity(description: str, hours_ago: float, *, succeeded: bool) -> ScalingActivity:
    return ScalingActivity(description=description, began=NOW - timedelta(hours=hours_ago), succeeded=succeeded)


def cluster_stack(*, hours_ago: float = 10, deleted: datetime | None = None) -> AuditedStack:
    return AuditedStack(
        name="TrnClusterStack",
        stack_id="arn:aws:cloudformation:us-west-2:123456789012:stack/TrnClusterStack/1",
        status="DELETE_COMPLETE" if deleted else "CREATE_COMPLETE",
        cluster=CLUSTER,
        created=NOW - timedelta(hours=hours_ago),
        deleted=deleted,
        made={GROUP: "CREATE_COMPLETE"},
    )


@dataclass
class FakeSpendingAccount(FakeAuditedAccount):
    """`activities` and `bill`: None if that call is denied. Records the requests to Cost Explorer."""

    activities: Sequence[ScalingActivity] | None = ()
    bill: Mapping[str, Decimal] | None = field(default_factory=dict[str, Decimal])
    capacity: FakeCapacity = field(default_factory=FakeCapacity)
    requests: list[tuple[str, date, date]] = field(default_factory=list[tuple[str, date, date]])

    def scaling_activities(self, group: str) -> Sequence[ScalingActivity]:
        assert group == GROUP[1]
        if self.activities is None:
            raise UnavailableError("the permission autoscaling:DescribeScalingActivities is missing")
        return self.activities

    def billed(self, cluster: str, start: date, end: date) -> Mapping[str, Decimal]:
        self.requests.append((cluster, start, end))
        if self.bill is None:
            raise UnavailableError("the permission ce:GetCostAndUsage is missing")
        return self.bill
