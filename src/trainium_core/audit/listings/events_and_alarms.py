"""EventBridge rules and schedules, SNS topics, CloudWatch alarms and dashboards, and budgets."""

from decimal import Decimal

from trainium_core.audit.listings.listing import Entry, Listing, Location
from trainium_core.audit.resource import BY_USE, Charge, ChargedItem, Resource

BUDGETS_REGION = "us-east-1"
"""AWS Budgets has one endpoint for all regions."""

_STANDARD_RESOLUTION_SECONDS = 60
"""An alarm with a shorter period has high resolution, and another price (CloudWatch pricing)."""


@Listing(
    "EventBridge rule", "AWS::Events::Rule", arn_type="events:rule", permission="events:ListRules", in_estimates=False
)
def _rules(entry: Entry, _location: Location) -> Resource | None:
    if entry.get("ManagedBy"):  # created and managed by an AWS service
        return None
    name, arn = entry["Name"], entry["Arn"]
    return Resource(name=name, arn=arn, ids=frozenset([name, arn]), state=entry.get("State", ""), charge=BY_USE)


@Listing(
    "schedule",
    "AWS::Scheduler::Schedule",
    arn_type="scheduler:schedule",
    permission="scheduler:ListSchedules",
    in_estimates=False,
)
def _schedules(entry: Entry, _location: Location) -> Resource:
    name, arn = entry["Name"], entry["Arn"]
    return Resource(
        name=name,
        arn=arn,
        ids=frozenset([name, arn]),
        state=entry.get("State", ""),
        created=entry.get("CreationDate"),
        charge=BY_USE,
    )


@Listing("SNS topic", "AWS::SNS::Topic", arn_type="sns", permission="sns:ListTopics", in_estimates=False)
def _topics(entry: Entry, _location: Location) -> Resource:
    arn = entry["TopicArn"]
    return Resource(name=arn.rpartition(":")[2], arn=arn, ids=frozenset([arn]), charge=BY_USE)


@Listing(
    "CloudWatch alarm",
    "AWS::CloudWatch::Alarm",
    arn_type="cloudwatch:alarm",
    permission="cloudwatch:DescribeAlarms",
    entries="MetricAlarms[]",
)
def _alarms(entry: Entry, _location: Location) -> Resource:
    name, arn = entry["AlarmName"], entry["AlarmArn"]
    ids = frozenset([name, arn])
    return Resource(name=name, arn=arn, ids=ids, state=entry.get("StateValue", ""), charge=_alarm_charge(entry))


def _alarm_charge(entry: Entry) -> Charge:
    if "MetricName" in entry and entry.get("Period", 0) >= _STANDARD_RESOLUTION_SECONDS:
        return Charge(items=(ChargedItem(product="alarm", quantity=Decimal(1)),))
    return Charge(unpriced="an alarm on an expression or query, or with high resolution")


@Listing(
    "CloudWatch dashboard",
    "AWS::CloudWatch::Dashboard",
    arn_type="cloudwatch:dashboard",
    permission="cloudwatch:ListDashboards",
    entries="DashboardEntries[]",
)
def _dashboards(entry: Entry, _location: Location) -> Resource:
    name, arn = entry["DashboardName"], entry["DashboardArn"]
    charge = Charge(items=(ChargedItem(product="dashboard", quantity=Decimal(1)),))
    return Resource(name=name, arn=arn, ids=frozenset([name, arn]), charge=charge)


@Listing(
    "budget",
    "AWS::Budgets::Budget",
    arn_type="budgets:budget",
    permission="budgets:ViewBudget",
    entries="Budgets[]",
    operation="describe_budgets",
    arguments={"AccountId": "{account}"},
    endpoint_region=BUDGETS_REGION,
    in_estimates=False,
)
def _budgets(entry: Entry, location: Location) -> Resource:
    name = entry["BudgetName"]
    return Resource(
        name=name,
        arn=location.arn("budgets", f"budget/{name}", is_global=True),
        ids=frozenset([name]),
        detail=f"{entry.get('BudgetLimit', {}).get('Amount', '?')} {entry.get('BudgetLimit', {}).get('Unit', '')}",
    )


EVENTS_AND_ALARMS = (_rules, _schedules, _topics, _alarms, _dashboards, _budgets)
