"""Types with an adapter, as their service shows them after creation, after a change, and after deletion."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, function, template, trust_of

TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"},
    ],
}


def policy(action: str) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, "Resource": "*"}]}


@pytest.fixture
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def one(resource_type: str, **properties: Any) -> dict[str, Any]:
    return template({"X": {"Type": resource_type, "Properties": properties}})


class TestIam:
    def role(self, **properties: Any) -> dict[str, Any]:
        return one("AWS::IAM::Role", AssumeRolePolicyDocument=TRUST, **properties)

    def attached(self, stacks: Stacks, role: str) -> tuple[list[str], list[str]]:
        iam = stacks.aws.client("iam")
        managed = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
        return [one["PolicyName"] for one in managed], iam.list_role_policies(RoleName=role)["PolicyNames"]

    def test_role_policies_change_in_place(self, stacks: Stacks) -> None:
        arn = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
        name = stacks.deploy(self.role(ManagedPolicyArns=[arn]))
        role = stacks.physical_id(name, "X")
        assert self.attached(stacks, role) == (["AmazonSSMManagedInstanceCore"], [])
        inline = [{"PolicyName": "p", "PolicyDocument": policy("s3:GetObject")}]
        assert stacks.update(name, self.role(Policies=inline)) == "UPDATE_COMPLETE"
        assert stacks.physical_id(name, "X") == role
        assert self.attached(stacks, role) == ([], ["p"])
        assert stacks.delete(name) == "DELETE_COMPLETE"

    def test_policy_follows_its_document_and_roles(self, stacks: Stacks) -> None:
        def wanted(action: str, *roles: str) -> dict[str, Any]:
            resources: dict[str, Any] = {
                role: {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}} for role in "AB"
            }
            properties = {
                "PolicyName": "p",
                "PolicyDocument": policy(action),
                "Roles": [{"Ref": role} for role in roles],
            }
            return template({**resources, "P": {"Type": "AWS::IAM::Policy", "Properties": properties}})

        name = stacks.deploy(wanted("s3:GetObject", "A"))
        stacks.update(name, wanted("s3:PutObject", "B"))
        a, b = stacks.physical_id(name, "A"), stacks.physical_id(name, "B")
        assert self.attached(stacks, a) == ([], [])
        document = stacks.aws.client("iam").get_role_policy(RoleName=b, PolicyName="p")["PolicyDocument"]
        assert document["Statement"][0]["Action"] == "s3:PutObject"
        assert stacks.delete(name) == "DELETE_COMPLETE"

    def test_managed_policy_is_updated_more_than_five_times_and_deleted(self, stacks: Stacks) -> None:
        def wanted(action: str) -> dict[str, Any]:
            return one("AWS::IAM::ManagedPolicy", PolicyDocument=policy(action))

        name = stacks.deploy(wanted("s3:GetObject"))
        arn = stacks.physical_id(name, "X")
        for number in range(6):
            assert stacks.update(name, wanted(f"s3:Get{number}")) == "UPDATE_COMPLETE"
        assert stacks.physical_id(name, "X") == arn
        assert stacks.delete(name) == "DELETE_COMPLETE"
        with pytest.raises(ClientError, match="NoSuchEntity"):
            stacks.aws.client("iam").get_policy(PolicyArn=arn)

    def test_instance_profile_contains_its_role(self, stacks: Stacks) -> None:
        resources = self.role()["Resources"]
        profile = {"Type": "AWS::IAM::InstanceProfile", "Properties": {"Roles": [{"Ref": "X"}]}}
        name = stacks.deploy(template({**resources, "P": profile}))
        found = stacks.aws.client("iam").get_instance_profile(InstanceProfileName=stacks.physical_id(name, "P"))
        assert [role["RoleName"] for role in found["InstanceProfile"]["Roles"]] == [stacks.physical_id(name, "X")]
        assert stacks.delete(name) == "DELETE_COMPLETE"


class TestBucket:
    def test_bucket_settings_are_set_changed_and_reset(self, stacks: Stacks) -> None:
        s3 = stacks.aws.client("s3")
        blocked = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
        block = dict.fromkeys(blocked, True)
        encryption = {
            "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}}]
        }
        expire = {"Id": "old", "Status": "Enabled", "Prefix": "neuron/", "ExpirationInDays": 30}
        name = stacks.deploy(
            one(
                "AWS::S3::Bucket",
                PublicAccessBlockConfiguration=block,
                BucketEncryption=encryption,
                LifecycleConfiguration={"Rules": [expire]},
                VersioningConfiguration={"Status": "Enabled"},
                OwnershipControls={"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
                Tags=[{"Key": "k", "Value": "v"}],
            )
        )
        bucket = stacks.physical_id(name, "X")
        rules = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
        assert rules[0]["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
        (rule,) = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
        assert (rule["Expiration"]["Days"], rule["Filter"]["Prefix"]) == (30, "neuron/")
        assert s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"] == block
        assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
        assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == [{"Key": "k", "Value": "v"}]

        changed = one("AWS::S3::Bucket", VersioningConfiguration={"Status": "Suspended"})
        assert stacks.update(name, changed) == "UPDATE_COMPLETE"
        assert stacks.physical_id(name, "X") == bucket
        assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Suspended"
        with pytest.raises(ClientError, match="NoSuchLifecycleConfiguration"):
            s3.get_bucket_lifecycle_configuration(Bucket=bucket)

    def test_bucket_policy_that_requires_tls_allows_loopback_upload(self, stacks: Stacks) -> None:
        deny = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": "*",
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
        document = {"Version": "2012-10-17", "Statement": [deny]}
        attached = {"Type": "AWS::S3::BucketPolicy", "Properties": {"Bucket": {"Ref": "B"}, "PolicyDocument": document}}
        name = stacks.deploy(template({"B": {"Type": "AWS::S3::Bucket"}, "P": attached}))
        s3, bucket = stacks.aws.client("s3"), stacks.physical_id(name, "B")
        assert json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"]) == document
        s3.put_object(Bucket=bucket, Key="k", Body=b"x")
        assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"


class TestLambda:
    def test_function_code_and_configuration_change_in_place(self, stacks: Stacks) -> None:
        def wanted(answer: str, timeout: int) -> dict[str, Any]:
            resources = function(f"def handler(event, context): return {answer!r}")
            resources["Fn"]["Properties"]["Timeout"] = timeout
            return template(resources)

        name = stacks.deploy(wanted("one", 5))
        arn, client = stacks.physical_id(name, "Fn"), stacks.aws.client("lambda")
        assert stacks.update(name, wanted("two", 9)) == "UPDATE_COMPLETE"
        assert stacks.physical_id(name, "Fn") == arn
        assert json.loads(client.invoke(FunctionName=arn)["Payload"].read()) == "two"
        assert client.get_function_configuration(FunctionName=arn)["Timeout"] == 9

    def test_log_group_of_template_is_deleted_with_the_stack(self, stacks: Stacks) -> None:
        resources = function("def handler(event, context): print('seen')")
        resources["Logs"] = {"Type": "AWS::Logs::LogGroup", "Properties": {"RetentionInDays": 7}}
        resources["Fn"]["Properties"]["LoggingConfig"] = {"LogGroup": {"Ref": "Logs"}}
        logs = stacks.aws.client("logs")
        before = {group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]}
        name = stacks.deploy(template(resources))
        group = stacks.physical_id(name, "Logs")
        stacks.aws.client("lambda").invoke(FunctionName=stacks.physical_id(name, "Fn"))
        assert logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"][0]["retentionInDays"] == 7
        assert "seen" in str(logs.filter_log_events(logGroupName=group)["events"])
        assert stacks.delete(name) == "DELETE_COMPLETE"
        assert {one["logGroupName"] for one in logs.describe_log_groups()["logGroups"]} == before


SCHEDULE = {
    "FlexibleTimeWindow": {"Mode": "OFF"},
    "ScheduleExpression": "rate(1 hour)",
    "Target": {"Arn": "arn:aws:sns:us-west-2:123456789012:t", "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]}},
}
ALARM = {
    "ComparisonOperator": "LessThanThreshold",
    "EvaluationPeriods": 1,
    "MetricName": "m",
    "Namespace": "n",
    "Period": 60,
    "Threshold": 1,
    "Statistic": "Sum",
}
NETWORK = {
    "V": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
    "S": {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "V"}, "CidrBlock": "10.0.0.0/24"}},
}
LUSTRE = {
    "FileSystemType": "LUSTRE",
    "StorageCapacity": 1200,
    "SubnetIds": [{"Ref": "S"}],
    "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
}


def role_of(service: str) -> dict[str, Any]:
    """The resource `Role`, which the service assumes."""
    return {"Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust_of(service)}}}


KEY = {"K": {"Type": "AWS::KMS::Key", "Properties": {}}}
TOPIC = {"T": {"Type": "AWS::SNS::Topic", "Properties": {}}}
RULE = {"EventPattern": {"source": ["aws.sagemaker"]}, "Targets": [{"Id": "t", "Arn": {"Ref": "T"}}]}

ENVIRONMENT = {
    "ServiceEnvironmentType": "SAGEMAKER_TRAINING",
    "CapacityLimits": [{"CapacityUnit": "NUM_INSTANCES", "MaxCapacity": 2}],
}
QUEUE = {
    "JobQueueType": "SAGEMAKER_TRAINING",
    "Priority": 1,
    "ServiceEnvironmentOrder": [{"Order": 1, "ServiceEnvironment": {"Ref": "E"}}],
}

# Type, properties, and the resources that it depends on.
ROWS = [
    ("AWS::SNS::Topic", {"DisplayName": "d"}, {}),
    ("AWS::CloudWatch::Alarm", ALARM, {}),
    ("AWS::Scheduler::Schedule", SCHEDULE, role_of("scheduler.amazonaws.com")),
    ("AWS::Batch::ServiceEnvironment", ENVIRONMENT, {}),
    ("AWS::Batch::SchedulingPolicy", {"FairsharePolicy": {"ShareDecaySeconds": 600}}, {}),
    ("AWS::Batch::JobQueue", QUEUE, {"E": {"Type": "AWS::Batch::ServiceEnvironment", "Properties": ENVIRONMENT}}),
    ("AWS::Events::Rule", RULE, TOPIC),
    ("AWS::ECR::Repository", {"ImageTagMutability": "IMMUTABLE"}, {}),
    ("AWS::FSx::FileSystem", LUSTRE, NETWORK),
    ("AWS::EFS::FileSystem", {"ThroughputMode": "elastic", "FileSystemTags": [{"Key": "k", "Value": "v"}]}, {}),
    ("AWS::KMS::Alias", {"AliasName": "alias/t", "TargetKeyId": {"Ref": "K"}}, KEY),
]
# Type -> client, operation and key with which its service lists the resources.
LISTINGS = {
    "AWS::SNS::Topic": ("sns", "list_topics", "Topics"),
    "AWS::CloudWatch::Alarm": ("cloudwatch", "describe_alarms", "MetricAlarms"),
    "AWS::Scheduler::Schedule": ("scheduler", "list_schedules", "Schedules"),
    "AWS::Batch::ServiceEnvironment": ("batch", "describe_service_environments", "serviceEnvironments"),
    "AWS::Batch::SchedulingPolicy": ("batch", "list_scheduling_policies", "schedulingPolicies"),
    "AWS::Batch::JobQueue": ("batch", "describe_job_queues", "jobQueues"),
    "AWS::Events::Rule": ("events", "list_rules", "Rules"),
    "AWS::ECR::Repository": ("ecr", "describe_repositories", "repositories"),
    "AWS::FSx::FileSystem": ("fsx", "describe_file_systems", "FileSystems"),
    "AWS::EFS::FileSystem": ("efs", "describe_file_systems", "FileSystems"),
    "AWS::KMS::Alias": ("kms", "list_aliases", "Aliases"),
}


@pytest.mark.parametrize(("resource_type", "properties", "others"), ROWS, ids=[row[0] for row in ROWS])
def test_service_lists_resource_until_stack_is_deleted(
    stacks: Stacks,
    resource_type: str,
    properties: dict[str, Any],
    others: dict[str, Any],
) -> None:
    service, operation, key = LISTINGS[resource_type]

    def count() -> int:
        return len(getattr(stacks.aws.client(service), operation)().get(key, []))

    before = count()
    wanted = template({**others, "X": {"Type": resource_type, "Properties": properties}})
    name = stacks.deploy(wanted)
    assert count() == before + 1
    assert stacks.delete(name) == "DELETE_COMPLETE"
    assert count() == before


def test_added_property_is_set_in_place(stacks: Stacks) -> None:
    name = stacks.deploy(one("AWS::KMS::Key"))
    key = stacks.physical_id(name, "X")
    stacks.update(name, one("AWS::KMS::Key", Description="now"))
    assert stacks.physical_id(name, "X") == key
    assert stacks.aws.client("kms").describe_key(KeyId=key)["KeyMetadata"]["Description"] == "now"


def test_rule_has_exactly_the_targets_of_its_template(stacks: Stacks) -> None:
    def targets(name: str) -> list[str]:
        rule = stacks.physical_id(name, "X")
        return [target["Id"] for target in stacks.aws.client("events").list_targets_by_rule(Rule=rule)["Targets"]]

    name = stacks.deploy(template({**TOPIC, "X": {"Type": "AWS::Events::Rule", "Properties": RULE}}))
    assert targets(name) == ["t"]
    renamed = RULE | {"Targets": [{"Id": "u", "Arn": {"Ref": "T"}}]}
    stacks.update(name, template({**TOPIC, "X": {"Type": "AWS::Events::Rule", "Properties": renamed}}))
    assert targets(name) == ["u"]


def test_budget_limit_changes_in_place_and_new_subscriber_or_name_replaces_the_budget(stacks: Stacks) -> None:
    def budget(limit: int, email: str, name: str = "") -> dict[str, Any]:
        notification = {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 80}
        return one(
            "AWS::Budgets::Budget",
            Budget={
                "BudgetType": "COST",
                "TimeUnit": "MONTHLY",
                "BudgetLimit": {"Amount": limit, "Unit": "USD"},
                **({"BudgetName": name} if name else {}),
            },
            NotificationsWithSubscribers=[
                {"Notification": notification, "Subscribers": [{"SubscriptionType": "EMAIL", "Address": email}]}
            ],
        )

    def limit() -> float:
        (found,) = stacks.aws.client("budgets").describe_budgets(AccountId="123456789012")["Budgets"]
        return float(found["BudgetLimit"]["Amount"])

    name = stacks.deploy(budget(5, "a@example.com"))
    first = stacks.physical_id(name, "X")
    stacks.update(name, budget(6, "a@example.com"))
    assert (limit(), stacks.physical_id(name, "X")) == (6, first)
    stacks.update(name, budget(6, "b@example.com"))
    assert stacks.physical_id(name, "X") != first
    assert limit() == 6
    stacks.update(name, budget(6, "b@example.com", "mine"))
    assert stacks.physical_id(name, "X") == "mine"
    assert stacks.delete(name) == "DELETE_COMPLETE"
    assert not stacks.aws.client("budgets").describe_budgets(AccountId="123456789012").get("Budgets")
