"""The documented permissions of each role, against the calls in the code and the Service Authorization Reference."""

import ast
import json
import re
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cfnlint.helpers import load_resource

import trainium_core
import trainium_runtime
from tests.core.plans import from_settings
from tests.core.service_authorization import arn_format, known_actions
from tools.permissions.cloudformation import dependent
from trainium_cli.main import COMMANDS
from trainium_core.audit.listings.registry import LISTINGS
from trainium_core.facts import DATA
from trainium_core.naming import CONSTRUCT_IDS, SET_ASLEEP_FUNCTION, training_job_prefix
from trainium_core.permissions.roles import (
    action,
    allowed_actions,
    commands,
    policies,
    role_scope,
    roles,
)

SOURCES = [Path(trainium_core.__file__).parent, Path(trainium_runtime.__file__).parent]
PEOPLE = [role for role in roles() if role != "cloudformation"]

WITHOUT_A_LABEL = {
    "sts:AssumeRole": "the CDK CLI takes the roles of its bootstrap",
    "iam:PassRole": "SubmitServiceJob passes a role to SageMaker",
    "batch:TagResource": "SubmitServiceJob sets tags",
    "ssm:StartSession": "the AWS CLI starts a session",
    "ssm:ResumeSession": "the AWS CLI resumes a session after a lost connection",
    "ssm:TerminateSession": "the AWS CLI ends a session",
    "ssmmessages:OpenDataChannel": "the Session Manager plugin of the AWS CLI opens a channel",
}
"""The documented actions that the code does not name beside a call, and why they are needed."""

WITHOUT_AWS_CALLS = {
    *("types", "settings", "plan", "permissions", "local", "init", "explain"),
    *("assess", "report", "pilot", "up", "down"),
}
"""Commands that do not call AWS. `pilot`, `up` and `down` run other commands, which do."""


@cache
def labelled() -> frozenset[str]:
    """The actions that the code names beside its calls, for messages about missing permissions."""
    calling = [text for source in SOURCES for file in source.rglob("*.py") if "_errors(" in (text := file.read_text())]
    texts = [
        node.value
        for text in calling
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value
    ]
    words = {word for text in texts for word in re.findall(r"[a-z0-9-]+:[A-Z][A-Za-z0-9]+", text)}
    return frozenset(words) | {listing.permission for listing in LISTINGS}


def documented() -> set[str]:
    return {name for role in PEOPLE for actions in commands(role).values() for name in actions}


def test_every_call_of_the_code_is_documented_for_a_role() -> None:
    missing = sorted(labelled() - documented())
    assert missing == [], "put these into src/trainium_core/data/permissions.toml, at the commands that call them"


def test_every_documented_action_is_called() -> None:
    not_called = documented() - labelled() - WITHOUT_A_LABEL.keys()
    assert not_called == set(), "src/trainium_core/data/permissions.toml has these, which no code names beside a call"
    assert WITHOUT_A_LABEL.keys() <= documented() - labelled()


def test_every_documented_action_is_in_the_reference() -> None:
    missing = sorted(documented() - set(known_actions()))
    assert missing == [], "add these with `python -m tools.permissions.service_authorization`, which says how"


def test_every_command_that_calls_aws_has_a_role() -> None:
    named = {word for role in PEOPLE for name in commands(role) for word in re.split("[ ,]+", name)}
    assert named & WITHOUT_AWS_CALLS == set()
    missing = set(COMMANDS) - named - WITHOUT_AWS_CALLS
    assert missing == set(), "put these into src/trainium_core/data/permissions.toml, or into WITHOUT_AWS_CALLS here"


def test_page_lists_every_command_of_a_role() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/permissions.md").read_text()
    for role in PEOPLE:
        (row,) = re.findall(rf"^\| `{role}` \| (.*) \|$", page.partition("## ")[0], re.MULTILINE)
        words = set(re.findall(r"[a-z]+", row))
        assert [name for name in commands(role) if not set(re.findall(r"[a-z]+", name)) <= words] == [], role


def test_role_look_changes_nothing() -> None:
    changing = [name for name in allowed_actions("read-only") if action(name).access not in READS]
    assert changing == []


READS = ("Read", "List")

WITHOUT_A_TYPE = {"ssmmessages:OpenDataChannel"}
"""The actions that the reference has no resource type for, but a page of AWS's documentation."""

CONTENT = ("s3", "ssm", "secretsmanager", "logs", "kms")
"""Services whose actions of access level Read may return content."""


@pytest.mark.parametrize("role", PEOPLE)
def test_roles_of_people_read_no_content_of_other_stacks(role: str) -> None:
    everywhere = {
        name
        for document in documents(role)
        for statement in document["Statement"]
        if "*" in statement["Resource"]
        for name in statement["Action"]
        if name.partition(":")[0] in CONTENT and action(name).access == "Read"
    }
    # IAM cannot limit GetCommandInvocation, but results are read by the ID of a command, which only its sender has.
    # DescribeKey returns no content.
    assert everywhere - {"ssm:GetCommandInvocation"} == {"kms:DescribeKey"}


@pytest.mark.parametrize("role", PEOPLE)
def test_roles_of_people_exclude_logs_of_other_sagemaker_jobs(role: str) -> None:
    jobs = "arn:aws:logs:us-west-2:123456789012:log-group:/aws/sagemaker/TrainingJobs"
    endpoints = "arn:aws:logs:us-west-2:123456789012:log-group:/aws/sagemaker/Endpoints/web"
    others = (
        jobs,
        endpoints,
        f"{jobs}:log-stream:{training_job_prefix('abc-prod')}1/algo-1",
        f"{endpoints}:log-stream:a",
    )
    allowed = {
        name
        for document in documents(role, cluster_name="abc")
        for statement in document["Statement"]
        for name in statement["Action"]
        if any(fnmatchcase(other, pattern) for other in others for pattern in statement["Resource"] if pattern != "*")
    }
    assert allowed <= {"logs:DescribeLogStreams"}
    own = f"{jobs}:log-stream:{training_job_prefix('abc')}1/algo-1"
    reading = [
        s for d in documents(role, cluster_name="abc") for s in d["Statement"] if "logs:GetLogEvents" in s["Action"]
    ]
    assert any(fnmatchcase(own, pattern) for statement in reading for pattern in statement["Resource"])


def test_operators_update_stacks_only_with_the_sleep_function() -> None:
    operate = allowed_actions("operate")
    assert {name for name in operate if re.match("cloudformation:(Create|Update|Execute|Set)", name)} == set()
    (invoking,) = [
        each for d in documents("operate") for each in d["Statement"] if "lambda:InvokeFunction" in each["Action"]
    ]
    assert all(SET_ASLEEP_FUNCTION in resource for resource in invoking["Resource"])
    assert f"function:{CONSTRUCT_IDS['cluster']}-{SET_ASLEEP_FUNCTION}-*" in invoking["Resource"][0]


def test_dependent_actions_of_cloudformation_are_allowed() -> None:
    """For example `route53:AssociateVPCWithHostedZone` for an interface endpoint with private DNS."""
    allowed = set(allowed_actions("cloudformation"))
    needed = dependent(allowed)
    assert "route53:AssociateVPCWithHostedZone" in needed
    assert needed <= allowed, "run `python -m tools.permissions.cloudformation`, or say in it why they are not needed"


def test_roles_may_be_passed_only_to_named_services() -> None:
    def services(role: str) -> Any:
        (passing,) = [each for d in documents(role) for each in d["Statement"] if "iam:PassRole" in each["Action"]]
        return passing["Condition"]["StringEquals"]["iam:PassedToService"]

    assert services("operate") == "sagemaker.amazonaws.com"
    assert "sagemaker.amazonaws.com" in services("cloudformation")


@pytest.mark.parametrize("role", ["read-only", "cloudformation"])
def test_custom_image_parameter_is_readable(role: str) -> None:
    allowed = {
        resource
        for document in documents(role, ami="/my/golden/ami", stacks="cluster")
        for statement in document["Statement"]
        if any(name.startswith("ssm:GetParameter") for name in statement["Action"])
        for resource in statement["Resource"]
    }
    assert "arn:aws:ssm:us-west-2:123456789012:parameter/my/golden/ami" in allowed


def documents(role: str, *, qualifier: str = "hnb659fds", **settings: Any) -> list[Any]:
    plan = from_settings(**{"stacks": ",".join(CONSTRUCT_IDS), "eks_cluster": "prod", **settings})
    return [dict(each) for each in policies(role, role_scope(plan, account="123456789012", qualifier=qualifier))]


def allowed_on(role: str, **settings: Any) -> dict[str, set[str]]:
    """The resources that a role may use, by action."""
    found: dict[str, set[str]] = {}
    for statement in [each for document in documents(role, **settings) for each in document["Statement"]]:
        for name in statement["Action"]:
            found.setdefault(name, set()).update(statement["Resource"])
    return found


@pytest.mark.parametrize("role", roles())
def test_every_required_resource_type_of_an_action_is_allowed(role: str) -> None:
    """Otherwise IAM denies every request, because a request names a resource of each required type."""
    for name, resources in allowed_on(role).items():
        if "*" in name or "*" in resources:
            continue
        for kind in action(name).required:
            assert any(fits_type(name, kind, resource) for resource in resources), (name, kind)


@pytest.mark.parametrize("role", PEOPLE)
def test_changes_by_people_are_limited_to_resources_or_have_a_reason(role: str) -> None:
    reasons = tomllib.loads((DATA / "permissions.toml").read_text())["everywhere"]
    changes = {name for name, on in allowed_on(role).items() if "*" in on and action(name).access not in READS}
    assert changes <= reasons.keys()


def test_operators_open_resume_and_end_only_their_own_sessions() -> None:
    on = allowed_on("operate")
    own = {"arn:aws:ssm:us-west-2:123456789012:session/${aws:userid}-*"}
    for name in ("ssmmessages:OpenDataChannel", "ssm:ResumeSession", "ssm:TerminateSession"):
        assert on[name] == own


@pytest.mark.parametrize(
    ("name", "resource", "key"),
    [
        ("batch:SubmitServiceJob", "job-queue", "aws:ResourceTag"),
        ("batch:TagResource", "service-job", "aws:RequestTag"),
        ("batch:TerminateServiceJob", "service-job", "aws:ResourceTag"),
    ],
)
def test_operators_use_only_queues_and_jobs_of_the_cluster(name: str, resource: str, key: str) -> None:
    arn = f"arn:aws:batch:us-west-2:123456789012:{resource}/*"
    statements = [each for d in documents("operate", cluster_name="abc") for each in d["Statement"]]
    (found,) = [each for each in statements if name in each["Action"] and arn in each["Resource"]]
    assert found["Condition"] == {"StringEquals": {f"{key}/trn:cluster": "abc"}}


def test_qualifier_limits_the_bootstrap_resources_of_every_role() -> None:
    """Roles of another qualifier may be administrators, so that a person who can assume them is one."""
    named = {resource for role in roles() for on in allowed_on(role, qualifier="mlteam").values() for resource in on}
    bootstrap = {resource for resource in named if "cdk-" in resource}
    assert bootstrap == {
        *(
            f"arn:aws:iam::123456789012:role/cdk-mlteam-{name}-role-123456789012-us-west-2"
            for name in ("deploy", "file-publishing", "image-publishing", "lookup")
        ),
        "arn:aws:s3:::cdk-mlteam-assets-123456789012-us-west-2/*",
        "arn:aws:ssm:us-west-2:123456789012:parameter/cdk-bootstrap/mlteam/*",
    }


def test_deploy_creates_the_service_linked_role_of_service_quotas_only() -> None:
    (creating,) = [
        each for d in documents("deploy") for each in d["Statement"] if "iam:CreateServiceLinkedRole" in each["Action"]
    ]
    assert creating["Condition"] == {"StringEquals": {"iam:AWSServiceName": "servicequotas.amazonaws.com"}}


@pytest.mark.parametrize("role", roles())
def test_policies_have_every_action_and_fit_into_managed_policies(role: str) -> None:
    found = documents(role)
    assert all(len(json.dumps(document, separators=(",", ":"))) <= 6144 for document in found)
    allowed = [name for document in found for statement in document["Statement"] for name in statement["Action"]]
    assert sorted({*allowed}) == list(allowed_actions(role))


@pytest.mark.parametrize("role", roles())
def test_resources_of_permissions_are_supported_by_their_actions(role: str) -> None:
    for statement in [each for document in documents(role) for each in document["Statement"]]:
        for name in statement["Action"]:
            for resource in statement["Resource"]:
                assert resource == "*" or fits(name, resource), (name, resource)


def fits(name: str, resource: str) -> bool:
    found = action(name)
    if found.any_type or name in WITHOUT_A_TYPE:
        return True
    return any(fits_type(name, kind, resource) for kind in (*found.required, *found.optional))


def fits_type(name: str, kind: str, resource: str) -> bool:
    # Placeholders in ARNs of the reference may be empty, such as the account in the ARN of a bucket. Some are a `*`.
    pattern = re.sub(r"\\\$\\\{\w+\\\}|\\\*", "[^ ]*", re.escape(arn_format(name, kind)))
    return re.fullmatch(pattern, resource) is not None


def test_operators_delete_tagged_resources_of_the_cluster_only() -> None:
    conditions = {
        name: statement.get("Condition")
        for document in documents("operate", cluster_name="mine")
        for statement in document["Statement"]
        for name in statement["Action"]
    }
    by_tag = ("ec2:DeleteNetworkInterface", "ec2:DeleteSnapshot", "ec2:TerminateInstances", "ssm:DeleteParameter")
    for name in by_tag:
        assert conditions[name] == {"StringEquals": {"aws:ResourceTag/trn:cluster": "mine"}}, name


def test_operators_run_commands_only_on_the_login_node_of_the_cluster() -> None:
    (condition,) = [
        statement["Condition"]
        for document in documents("operate", cluster_name="mine")
        for statement in document["Statement"]
        if "ssm:SendCommand" in statement["Action"] and any(":instance/" in one for one in statement["Resource"])
    ]
    assert condition == {"StringEquals": {"ssm:resourceTag/trn:cluster": "mine", "ssm:resourceTag/Name": "mine-login"}}


def test_cloudformation_has_no_iam_permission_on_all_resources() -> None:
    for statement in [each for document in documents("cloudformation") for each in document["Statement"]]:
        if any(name.startswith("iam:") for name in statement["Action"]):
            assert "*" not in statement["Resource"]


CFN_LINT_POLICIES = load_resource("cfnlint.data.AdditionalSpecs", "Policies.json")
"""The actions of services, from cfn-lint's copy of the Service Authorization Reference."""


def types_in_cfn_lint(name: str) -> set[str]:
    prefix, _, short = name.partition(":")
    return {kind.lower() for kind in CFN_LINT_POLICIES[prefix]["Actions"][short.lower()].get("Resources", [])}


@pytest.mark.parametrize("prefix", sorted({name.partition(":")[0] for name in known_actions()}))
def test_resource_types_of_actions_equal_those_of_cfn_lint(prefix: str) -> None:
    for name in [name for name in known_actions() if name.startswith(f"{prefix}:")]:
        found = action(name)
        if not found.any_type:
            assert {kind.lower() for kind in (*found.required, *found.optional)} == types_in_cfn_lint(name), name


def test_operator_may_only_read_a_read_only_cache() -> None:
    plan = from_settings(cache_bucket="team-cache", cache_access="read")
    statements = [each for document in policies("operate", role_scope(plan)) for each in document["Statement"]]
    on_cache = [statement for statement in statements if any("team-cache/" in arn for arn in statement["Resource"])]
    assert {name for statement in on_cache for name in statement["Action"]} == {"s3:GetObject"}


def test_existing_cache_bucket_may_be_listed() -> None:
    statements = documents("read-only", cache_bucket="team-cache")[0]["Statement"]
    listing = [statement for statement in statements if "s3:ListBucket" in statement["Action"]]
    assert "arn:aws:s3:::team-cache" in listing[0]["Resource"]
