"""Whether the bootstrap and the plan's stacks are in a state that allows a deployment."""

from collections.abc import Mapping
from dataclasses import replace

from trainium_core.aws.account import AwsAccount
from trainium_core.facts import facts
from trainium_core.naming import BOOTSTRAP_STACK_NAME, CONSTRUCT_IDS, DEFAULT_QUALIFIER
from trainium_core.plan import Plan
from trainium_core.preflight.finding import worst_result
from trainium_core.stacks.deployed_stack import STABLE_STATUSES, DeployedStack, StackNetwork
from trainium_runtime.check_result import CheckResult
from trainium_runtime.naming import CLUSTER_TAG, PROJECT_TAG

_DESTROY = "run: cdk destroy {stack}; the stack's events name what cannot be deleted"
_ROLL_BACK = "run: cdk rollback {stack}"

_REPAIRS: Mapping[str, str] = {
    "CREATE_FAILED": _ROLL_BACK,
    "UPDATE_FAILED": _ROLL_BACK,
    "UPDATE_ROLLBACK_FAILED": _ROLL_BACK,
    "ROLLBACK_FAILED": _DESTROY,
    "DELETE_FAILED": _DESTROY,
}
"""The advice for states in which a stack cannot be updated; _stack_result() has the advice for other states."""


def check_bootstrap(plan: Plan, account: AwsAccount, *, qualifier: str = DEFAULT_QUALIFIER) -> CheckResult:
    """Whether the account and region are bootstrapped for the CDK, in a version that the stacks accept."""
    result = toolkit_bootstrap(plan.region, account, qualifier)
    if result.outcome != "fail" or qualifier != DEFAULT_QUALIFIER:
        return result
    hint = "if the app has another qualifier, set @aws-cdk/core:bootstrapQualifier in cdk.json"
    return replace(result, found=f"{result.found}; {hint}")  # `trn deploy` runs the command in `fix`


def toolkit_bootstrap(region: str, account: AwsAccount, qualifier: str) -> CheckResult:
    """Check the version that `cdk bootstrap` stored in a parameter, which does not depend on the stack's name."""
    bootstrap = facts()["bootstrap"]
    parameter = bootstrap["version_parameter"].format(qualifier=qualifier)
    version = account.parameter(parameter)
    needed = f"version {bootstrap['version']} or newer"
    if version is not None and not version.isdecimal():
        found = f"{parameter} is {version!r}, which is not a version"
        return CheckResult(outcome="unknown", found=found, needed=needed)
    if version is not None and int(version) >= bootstrap["version"]:
        of = "" if qualifier == DEFAULT_QUALIFIER else f" with the qualifier {qualifier}"
        return CheckResult(outcome="pass", found=f"bootstrapped{of}, version {version}", needed=needed)
    fix = _bootstrap_advice(f"aws://{account.identity().account}/{region}", qualifier, exists=version is not None)
    if version is not None:
        return CheckResult(outcome="fail", found=f"the bootstrap has version {version}", needed=needed, fix=fix)
    return CheckResult(outcome="fail", found=f"the parameter {parameter} does not exist", needed=needed, fix=fix)


def _bootstrap_advice(environment: str, qualifier: str, *, exists: bool) -> str:
    """The command to run. For another qualifier, it is no command that `trn deploy` runs.

    Its stack may have any name, and its execution role other policies. In the stack of the default qualifier, the
    command would replace the roles and the bucket of all other apps.
    """
    if qualifier == DEFAULT_QUALIFIER:
        return f"run: cdk bootstrap {environment}"
    stack = "NAME" if exists else f"{BOOTSTRAP_STACK_NAME}-{qualifier}"
    subject = "update its stack" if exists else "create it in a separate stack, with the policies of your choice"
    return f"{subject}: cdk bootstrap --qualifier {qualifier} --toolkit-stack-name {stack} {environment}"


def check_stack(plan: Plan, account: AwsAccount) -> CheckResult:
    """Whether the stacks in trn:stacks are in a state that allows a deployment, and belong to the cluster."""
    return worst_result(
        [_stack_result(plan.stack_names[key], CONSTRUCT_IDS[key], plan, account) for key in plan.stacks]
    )


def check_project(plan: Plan, account: AwsAccount) -> CheckResult:
    """Whether the plan's existing stacks were deployed by its project, and a new cluster is the project's only one."""
    names = [plan.stack_names[key] for key in plan.stacks]
    deployed = {name: stack for name in names if (stack := account.stacks.deployed_stack(name)) is not None}
    for name, stack in deployed.items():
        other = other_project(plan, stack)
        if other:
            found = f"{name} belongs to the project {other}, not to that of this plan ({plan.project_id or 'no ID'})"
            fix = f"set another trn:cluster_name; to change that cluster, run: trn deploy --cluster {plan.cluster_name}"
            return CheckResult(outcome="fail", found=found, fix=fix)
    if plan.project_id and not deployed and (others := account.stacks.project_stacks(plan.project_id)):
        clusters = sorted({stack.tags[CLUSTER_TAG] for stack in others.values() if CLUSTER_TAG in stack.tags})
        found = (
            f"this project deployed {', '.join(clusters)} ({', '.join(sorted(others))}), which would keep running, and "
            f"be billed, beside the new cluster {plan.cluster_name}; `trn list` shows its nodes and price"
        )
        fix = (
            f"to replace it, first run: trn destroy --cluster {clusters[0]}; to have both, run: trn deploy --cluster "
            f"{plan.cluster_name}"
        )
        return CheckResult(outcome="fail", found=found, fix=fix)
    return CheckResult(outcome="pass", found="no stack belongs to another project")


def other_project(plan: Plan, stack: DeployedStack) -> str | None:
    """The ID of the project that deployed a stack; None if it has no ID, or that of the plan."""
    project = stack.tags.get(PROJECT_TAG)
    return None if project == plan.project_id else project


def _stack_result(stack: str, construct_id: str, plan: Plan, account: AwsAccount) -> CheckResult:
    deployed = account.stacks.deployed_stack(stack)
    if deployed is None:
        return CheckResult(outcome="pass", found=f"{stack} does not exist yet")
    status = deployed.status
    if status == "REVIEW_IN_PROGRESS":
        return CheckResult(outcome="pass", found=f"{stack} has only change sets ({status})")
    contents = account.stacks.stack_contents(deployed)
    cluster = contents.cluster
    if cluster not in (None, plan.cluster_name):
        found = f"{stack} belongs to cluster {cluster}, not to {plan.cluster_name}: cdk deploy would replace {cluster}"
        fix = f"set trn:cluster_name to {cluster} to change that cluster, or to another name"
        return CheckResult(outcome="fail", found=found, fix=fix)
    if status in STABLE_STATUSES:
        if contents.network and (refusal := _unsupported_network_change(stack, construct_id, plan, contents.network)):
            return refusal
        return CheckResult(outcome="pass", found=f"{stack} exists ({status}) and will be updated")
    if status == "ROLLBACK_COMPLETE":
        found = f"{stack} could not be created earlier ({status}): cdk deploy first deletes its remains"
        return CheckResult(outcome="warn", found=found)
    if status.endswith("_IN_PROGRESS"):
        return CheckResult(outcome="fail", found=f"{stack} is in {status}", fix="wait until the operation has ended")
    fix = _REPAIRS.get(status, f"{_ROLL_BACK}, or cdk destroy {{stack}}").format(stack=construct_id)
    return CheckResult(outcome="fail", found=f"{stack} is in {status}", fix=fix)


def _unsupported_network_change(
    stack: str, construct_id: str, plan: Plan, deployed: StackNetwork
) -> CheckResult | None:
    """The failure if CloudFormation cannot, or must not, replace the existing network with that of the plan."""
    destroy = f"destroy the cluster first: trn destroy, or cdk destroy {construct_id}"
    uses_existing_vpc = plan.network.vpc_id is not None
    if not uses_existing_vpc and deployed.zone_id != plan.zone_id and deployed.cidr == plan.network.vpc_cidr:
        found = (
            f"{stack} has its subnet in {deployed.zone_id}, and the plan needs {plan.zone_id}: CloudFormation creates "
            "the new subnet before it deletes the old one, and EC2 refuses two subnets with the same addresses "
            "(InvalidSubnet.Conflict)"
        )
        zone_fits = deployed.zone_id in plan.type.zones[plan.region]
        fix = f"set trn:availability_zone_id to {deployed.zone_id}, or {destroy}" if zone_fits else destroy
        return CheckResult(outcome="fail", found=found, needed=f"a subnet in {plan.zone_id}", fix=fix)
    if deployed.has_lustre and (uses_existing_vpc or deployed.cidr != plan.network.vpc_cidr):
        wanted = f"the VPC {plan.network.vpc_id}" if uses_existing_vpc else f"trn:vpc_cidr {plan.network.vpc_cidr}"
        found = (
            f"{stack} has its VPC at {deployed.cidr}: {wanted} would replace the FSx for Lustre file system with an "
        )
        found += "empty one"
        fix = f"set trn:vpc_cidr to {deployed.cidr} and remove trn:vpc_id; or copy your data to S3, and {destroy}"
        return CheckResult(outcome="fail", found=found, fix=fix)
    return None
