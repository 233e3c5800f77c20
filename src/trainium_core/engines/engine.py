"""What an engine is without a plan. What takes a plan is named here, and loaded when somebody asks for it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServiceLogs:
    """Log groups that a service makes by itself: their names begin with `prefix` and end in the id of a resource.

    `resource_type` is the CloudFormation type of that resource.
    """

    prefix: str
    resource_type: str


@dataclass(frozen=True, kw_only=True)
class ServiceNodes:
    """Nodes that a service runs in a resource of the stack, and no Auto Scaling group.

    `resource_type`: its CloudFormation type. `called`: what messages call it. `running`: name of the function that says
    how many of them are billed, for an AwsService and the physical id of the resource.
    """

    resource_type: str
    called: str
    running: str


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One engine. Names such as `package.module:NAME` are resolved where their objects are used.

    key: what trn:stacks calls it. construct_id: id of its stack in the app. stack_class: name of the stack's CDK class.
    settings: its section of the plan, whose settings all have defaults; None if it has none of its own.
    rules: name of a sequence of plan.rules.rule.Rule. warnings: name of the function that gives, for a plan, what its
    author should know, by setting. projections: name of its engines.projections.Projections.
    checks: name of what preflight asks for it, engines.projections.Check by name, in the order of their findings.
    audited: name of the sequence of audit.listings.listing.Listing with the kinds that only this engine makes.
    ends_with_pilot: whether trn:ends ends its stack. can_sleep: whether its stack stays without nodes then, unless
    trn:ends_action says otherwise. ec2_shows_nodes: whether its nodes are instances of the account.
    workloads: name of the teardown.aws_workloads.EngineWorkloads that finds and stops what outlives its stack, such as
    jobs; None if nothing does.
    """

    key: str
    construct_id: str
    stack_class: str
    settings: type | None = None
    rules: str | None = None
    warnings: str
    projections: str
    checks: str | None = None
    audited: str | None = None
    workloads: str | None = None
    ec2_shows_nodes: bool = True
    ends_with_pilot: bool = True
    can_sleep: bool = True
    service_logs: ServiceLogs | None = None
    service_nodes: ServiceNodes | None = None
