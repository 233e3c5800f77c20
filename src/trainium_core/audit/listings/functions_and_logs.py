"""Functions, state machines, log groups, parameters, and Auto Scaling groups."""

from datetime import UTC, datetime

from trainium_core.audit.listings.listing import Entry, Listing, Location, gib, tags_of
from trainium_core.audit.resource import BY_USE, FREE, Charge, Resource
from trainium_core.engines.registry import SERVICE_LOGS


def _group(entry: Entry, _location: Location) -> Resource:
    name = entry["AutoScalingGroupName"]
    return Resource(
        name=name,
        arn=entry["AutoScalingGroupARN"],
        ids=frozenset([name]),
        tags=tags_of(entry),
        state=entry.get("Status", ""),
        detail=f"{entry['DesiredCapacity']} desired, {len(entry.get('Instances', ()))} existing",
        created=entry.get("CreatedTime"),
    )


def _function(entry: Entry, _location: Location) -> Resource:
    name, arn = entry["FunctionName"], entry["FunctionArn"]
    return Resource(name=name, arn=arn, ids=frozenset([name, arn]), detail=entry.get("Runtime", ""), charge=BY_USE)


def _log_group(entry: Entry, location: Location) -> Resource:
    name = entry["logGroupName"]
    kept = entry.get("retentionInDays")
    of_a_service = name.startswith(tuple(logs.prefix for logs in SERVICE_LOGS))
    return Resource(
        name=name,
        arn=entry.get("arn") or location.arn("logs", f"log-group:{name}"),
        ids=frozenset([name]),
        parents=frozenset([name.rpartition("/")[2]] if of_a_service else []),
        detail=f"{gib(entry.get('storedBytes', 0))}, {f'kept {kept} days' if kept else 'never expires'}",
        created=datetime.fromtimestamp(entry["creationTime"] / 1000, UTC) if "creationTime" in entry else None,
        charge=Charge(unpriced="log storage, whose size CloudWatch shows late"),
    )


def _parameter(entry: Entry, location: Location) -> Resource:
    name, tier = entry["Name"], entry.get("Tier", "Standard")
    return Resource(
        name=name,
        arn=entry.get("ARN") or location.arn("ssm", f"parameter/{name.removeprefix('/')}"),
        ids=frozenset([name]),
        detail=tier,
        created=entry.get("LastModifiedDate"),
        charge=FREE if tier == "Standard" else Charge(unpriced=f"a parameter of the tier {tier}"),
    )


def _state_machine(entry: Entry, _location: Location) -> Resource:
    arn = entry["stateMachineArn"]
    ids = frozenset([entry["name"], arn])
    return Resource(name=entry["name"], arn=arn, ids=ids, created=entry.get("creationDate"), charge=BY_USE)


FUNCTIONS_AND_LOGS = (
    Listing(
        kind="Auto Scaling group",
        resource_type="AWS::AutoScaling::AutoScalingGroup",
        arn_type="autoscaling:autoScalingGroup",
        service="autoscaling",
        permission="autoscaling:DescribeAutoScalingGroups",
        entries="AutoScalingGroups[]",
        read=_group,
        in_estimates=False,
    ),
    Listing(
        kind="Lambda function",
        resource_type="AWS::Lambda::Function",
        arn_type="lambda:function",
        service="lambda",
        permission="lambda:ListFunctions",
        entries="Functions[]",
        read=_function,
        in_estimates=False,
    ),
    Listing(
        kind="log group",
        resource_type="AWS::Logs::LogGroup",
        arn_type="logs:log-group",
        service="logs",
        permission="logs:DescribeLogGroups",
        entries="logGroups[]",
        read=_log_group,
        in_estimates=False,
    ),
    Listing(
        kind="SSM parameter",
        resource_type="AWS::SSM::Parameter",
        arn_type="ssm:parameter",
        service="ssm",
        permission="ssm:DescribeParameters",
        entries="Parameters[?!starts_with(Name, '/aws/')]",
        read=_parameter,
    ),
    Listing(
        kind="state machine",
        resource_type="AWS::StepFunctions::StateMachine",
        arn_type="states:stateMachine",
        service="stepfunctions",
        permission="states:ListStateMachines",
        entries="stateMachines[]",
        read=_state_machine,
        in_estimates=False,
    ),
)
