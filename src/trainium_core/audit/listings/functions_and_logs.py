"""Lambda functions, log groups, parameters, and Auto Scaling groups."""

from datetime import UTC, datetime

from trainium_core.audit.listings.listing import Entry, Listing, Location, entry_tags, gib, tagged_node_group
from trainium_core.audit.resource import BY_USE, FREE, Charge, Resource
from trainium_core.plurals import count


@Listing(
    "Auto Scaling group",
    "AWS::AutoScaling::AutoScalingGroup",
    arn_type="autoscaling:autoScalingGroup",
    permission="autoscaling:DescribeAutoScalingGroups",
    in_estimates=False,
)
def _groups(entry: Entry, _location: Location) -> Resource:
    name, tags = entry["AutoScalingGroupName"], entry_tags(entry)
    node_group = tagged_node_group(tags)
    return Resource(
        name=name,
        arn=entry["AutoScalingGroupARN"],
        ids=frozenset([name]),
        tags=tags,
        parents=frozenset([node_group] if node_group else ()),
        state=entry.get("Status", ""),
        detail=f"{entry['DesiredCapacity']} desired, {len(entry.get('Instances', ()))} existing",
        created=entry.get("CreatedTime"),
    )


@Listing(
    "Lambda function",
    "AWS::Lambda::Function",
    arn_type="lambda:function",
    permission="lambda:ListFunctions",
    in_estimates=False,
)
def _functions(entry: Entry, _location: Location) -> Resource:
    name, arn = entry["FunctionName"], entry["FunctionArn"]
    return Resource(name=name, arn=arn, ids=frozenset([name, arn]), detail=entry.get("Runtime", ""), charge=BY_USE)


@Listing(
    "log group",
    "AWS::Logs::LogGroup",
    arn_type="logs:log-group",
    permission="logs:DescribeLogGroups",
    entries="logGroups[]",
    in_estimates=False,
)
def _log_groups(entry: Entry, location: Location) -> Resource:
    name = entry["logGroupName"]
    days = entry.get("retentionInDays")
    retention = f"kept {count(days, 'day')}" if days else "never expires"
    return Resource(
        name=name,
        arn=entry.get("arn") or location.arn("logs", f"log-group:{name}"),
        ids=frozenset([name]),
        detail=f"{gib(entry.get('storedBytes', 0))}, {retention}",
        created=datetime.fromtimestamp(entry["creationTime"] / 1000, UTC) if "creationTime" in entry else None,
        charge=Charge(unpriced="log storage; CloudWatch reports its size with a delay"),
    )


@Listing(
    "SSM parameter",
    "AWS::SSM::Parameter",
    arn_type="ssm:parameter",
    permission="ssm:DescribeParameters",
    entries="Parameters[?!starts_with(Name, '/aws/')]",
)
def _parameters(entry: Entry, location: Location) -> Resource:
    name, tier = entry["Name"], entry.get("Tier", "Standard")
    return Resource(
        name=name,
        arn=entry.get("ARN") or location.arn("ssm", f"parameter/{name.removeprefix('/')}"),
        ids=frozenset([name]),
        detail=tier,
        created=entry.get("LastModifiedDate"),
        charge=FREE if tier == "Standard" else Charge(unpriced=f"{tier} parameter"),
    )


FUNCTIONS_AND_LOGS = (_groups, _functions, _log_groups, _parameters)
