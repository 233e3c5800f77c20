"""Templates that AWS refuses: one for each rule of cfn-lint or constraint of botocore's API models that is named."""

from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, Template, function, parameter, template, trust_of

Resource = dict[str, Any]

ROLE = "arn:aws:iam::123456789012:role/r"
STATEMENT = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
TRUST = trust_of("ec2.amazonaws.com")
FORWARD = [{"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "200"}}]


def one(resource_type: str, **properties: Any) -> Template:
    return template({"R": {"Type": resource_type, "Properties": properties}})


def document(*statements: Resource, **more: Any) -> Resource:
    return {"Version": "2012-10-17", "Statement": list(statements), **more}


def sized(characters: int) -> Resource:
    """A policy document with about this number of characters."""
    return document(
        {**STATEMENT, "Resource": [f"arn:aws:s3:::{'b' * 50}{number:04}" for number in range(characters // 69)]}
    )


def role(*documents: Resource, **more: Any) -> Template:
    policies = [{"PolicyName": f"p{number}", "PolicyDocument": text} for number, text in enumerate(documents)]
    return one("AWS::IAM::Role", AssumeRolePolicyDocument=TRUST, Policies=policies, **more)


def trusting(**changed: Any) -> Template:
    statement = {**TRUST["Statement"][0], **changed}
    kept = {key: value for key, value in statement.items() if value is not None}
    return one("AWS::IAM::Role", AssumeRolePolicyDocument=document(kept))


def typed(parameter_type: str, value: str) -> Template:
    return template({"P": parameter()}, Parameters={"V": {"Type": parameter_type, "Default": value}})


def code(**changed: Any) -> Template:
    resources = function("def handler(event, context): pass")
    resources["Fn"]["Properties"] |= changed
    return template(resources)


def answering(answer: str) -> Template:
    """A custom resource whose function changes the answer, the dict `a`, by a statement."""
    body = f"""
        import json, urllib.request
        def handler(event, context):
            a = {{key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")}}
            a |= {{"Status": "SUCCESS", "PhysicalResourceId": "id"}}
            if event["RequestType"] == "Create":
                {answer}
            data = json.dumps(a).encode()
            urllib.request.urlopen(urllib.request.Request(event["ResponseURL"], data=data, method="PUT"))
        """
    custom = {"Type": "Custom::Answer", "Properties": {"ServiceToken": {"Fn::GetAtt": ["Fn", "Arn"]}}}
    return template({**function(body), "R": custom})


def listener(**properties: Any) -> Template:
    arn = "arn:aws:elasticloadbalancing:us-west-2:123456789012:loadbalancer/app/x/1"
    return one("AWS::ElasticLoadBalancingV2::Listener", LoadBalancerArn=arn, DefaultActions=FORWARD, **properties)


def many(section: str, count: int) -> Template:
    members = {"Type": "String", "Default": "x"} if section == "Parameters" else {"Value": "x"}
    return template({"P": parameter()}, **{section: {f"M{number}": members for number in range(count)}})


#: Rule of cfn-lint, or operation of botocore's models and constraint -> template, and words of the refusal.
WRONG: Mapping[str, tuple[Template, str]] = {
    # limits of templates and stacks
    "E2010 201 parameters": (many("Parameters", 201), "Number of parameters, 201"),
    "E6010 201 outputs": (many("Outputs", 201), "Number of outputs, 201"),
    "E3010 501 resources": (template({f"P{n}": parameter() for n in range(501)}), "Number of resources, 501"),
    "E3002 unknown property": (one("AWS::SSM::Parameter", Type="String", Value="x", Typ=1), "Typ"),
    "E3003 missing property": (one("AWS::SSM::Parameter", Type="String"), "Value"),
    "E3006 unknown type": (one("AWS::EC2::Vpcc"), "Unrecognized resource types"),
    "E3004 circular dependency": (
        template({"A": parameter({"Ref": "B"}), "B": parameter({"Ref": "A"})}),
        "Circular dependency",
    ),
    "E3005 unknown DependsOn": (template({"A": parameter(DependsOn="B")}), "Unresolved resource dependencies"),
    "E1010 unknown GetAtt": (template({"A": parameter(), "B": parameter({"Fn::GetAtt": ["A", "X"]})}), "attribute"),
    "E1012 unknown Ref": (template({"A": parameter({"Ref": "X"})}), "Unresolved resource dependencies [X"),
    "E8002 unknown condition": (template({"A": parameter(Condition="X")}), "Unresolved condition"),
    "E3035 deletion policy": (template({"A": parameter(DeletionPolicy="Keep")}), "Unrecognized DeletionPolicy"),
    "E2015 default out of bounds": (
        template({"P": parameter()}, Parameters={"V": {"Type": "Number", "MaxValue": 3, "Default": 4}}),
        "must be a number not greater than 3",
    ),
    # parameters that name what does not exist
    "CreateStack VPC": (
        typed("AWS::EC2::VPC::Id", "vpc-00000000000000000"),
        "vpc-00000000000000000 for parameter name V",
    ),
    "CreateStack subnet": (typed("AWS::EC2::Subnet::Id", "subnet-00000000000000000"), "does not exist"),
    "CreateStack subnets": (typed("List<AWS::EC2::Subnet::Id>", "subnet-00000000000000000"), "does not exist"),
    "CreateStack group": (typed("AWS::EC2::SecurityGroup::Id", "sg-00000000000000000"), "does not exist"),
    "CreateStack groups": (typed("List<AWS::EC2::SecurityGroup::Id>", "sg-00000000000000000"), "does not exist"),
    "CreateStack key pair": (typed("AWS::EC2::KeyPair::KeyName", "absent"), "does not exist"),
    "CreateStack image": (typed("AWS::EC2::Image::Id", "ami-00000000000000000"), "does not exist"),
    "CreateStack zone": (typed("AWS::EC2::AvailabilityZone::Name", "us-west-2z"), "does not exist"),
    # policies
    "E3510 no resource": (role(document({"Effect": "Allow", "Action": "s3:*"})), "Resource"),
    "E3510 principal": (role(document({**STATEMENT, "Principal": "*"})), "Principal"),
    "E3510 effect": (role(document({**STATEMENT, "Effect": "allow"})), "allow"),
    "E3510 no action": (role(document({"Effect": "Allow", "Resource": "*"})), "Action"),
    "E3510 version": (role(document(STATEMENT, Version="2020-01-01")), "2020-01-01"),
    "E3510 unknown element": (role(document({**STATEMENT, "Resources": "*"})), "Resources"),
    "E3510 managed policy": (one("AWS::IAM::ManagedPolicy", PolicyDocument=document({"Effect": "Allow"})), "Action"),
    "PutRolePolicy inline policy": (role(sized(11_000)), "Maximum policy size of 10240 bytes exceeded for role"),
    "PutRolePolicy sum of inline policies": (role(sized(6_000), sized(6_000)), "Maximum policy size of 10240 bytes"),
    "CreatePolicy managed policy": (
        one("AWS::IAM::ManagedPolicy", PolicyDocument=sized(6_400)),
        "Cannot exceed quota for PolicySize: 6144",
    ),
    "E3512 bucket policy without principal": (
        template(
            {
                "B": {"Type": "AWS::S3::Bucket"},
                "R": {
                    "Type": "AWS::S3::BucketPolicy",
                    "Properties": {"Bucket": {"Ref": "B"}, "PolicyDocument": document(STATEMENT)},
                },
            }
        ),
        "Principal",
    ),
    "E3513 repository policy": (
        one("AWS::ECR::Repository", RepositoryPolicyText=document({"Effect": "Allow", "Action": "ecr:*"})),
        "Principal",
    ),
    "trust without principal": (trusting(Principal=None), "Principal"),
    "trust with resource": (trusting(Resource="*"), "Resource"),
    "trust without action": (trusting(Action=None), "Action"),
    "trust with wrong effect": (trusting(Effect="Permit"), "Permit"),
    "CreateRole session duration": (role(MaxSessionDuration=60), "3600"),
    "CreateRole name": (role(RoleName="a b"), "RoleName"),
    # queues
    "JobQueue without an environment": (one("AWS::Batch::JobQueue", Priority=1), "ServiceEnvironmentOrder"),
    "JobQueue of an unknown type": (
        one("AWS::Batch::JobQueue", Priority=1, JobQueueType="SLURM", ServiceEnvironmentOrder=[]),
        "slurm",
    ),
    # load balancers
    "E3676 HTTPS without certificate": (listener(Port=443, Protocol="HTTPS"), "Certificates"),
    "CreateListener port": (listener(Port=70_000, Protocol="HTTP"), "65535"),
    "CreateListener protocol": (listener(Port=80, Protocol="FTP"), "FTP"),
    "E3680 one subnet": (
        template(
            {
                "V": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.9.0.0/16"}},
                "S": {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": {"Ref": "V"}, "CidrBlock": "10.9.0.0/24"}},
                "R": {
                    "Type": "AWS::ElasticLoadBalancingV2::LoadBalancer",
                    "Properties": {"Subnets": [{"Ref": "S"}], "Scheme": "internal"},
                },
            }
        ),
        "expected minimum item count: 2",
    ),
    # functions
    "E2531 runtime": (code(Runtime="python2.7"), "python2.7"),
    "E3663 reserved variable": (code(Environment={"Variables": {"AWS_REGION": "x"}}), "reserved keys"),
    "E3697 size of variables": (code(Environment={"Variables": {"AB": "x" * 5_000}}), "4KB"),
    "CreateFunction memory": (code(MemorySize=64), "128"),
    "CreateFunction timeout": (code(Timeout=901), "900"),
    "E3633 zip without runtime": (code(Runtime={"Ref": "AWS::NoValue"}), "Runtime"),
    # custom resources
    "custom resource answer of 5,000 bytes": (
        answering('a["Data"] = {"x": "y" * 5000}'),
        "Response object is too long",
    ),
    "custom resource without physical ID": (answering('del a["PhysicalResourceId"]'), "Invalid PhysicalResourceId"),
    "custom resource with another request": (answering('a["RequestId"] = "x"'), "RequestId must be copied"),
    "custom resource without service token": (one("Custom::X"), "ServiceToken"),
    # other services
    "PutParameter value": (one("AWS::SSM::Parameter", Type="String", Value="x" * 4_097), "4096 characters"),
    "PutParameter advanced": (one("AWS::SSM::Parameter", Type="String", Value="x" * 8_193, Tier="Advanced"), "8192"),
    "E3686 FIFO name": (one("AWS::SQS::Queue", FifoQueue=True, QueueName="q"), ".fifo"),
    "CreateQueue delay": (one("AWS::SQS::Queue", DelaySeconds=901), "900"),
    "E3027 schedule": (one("AWS::Events::Rule", ScheduleExpression="rate(1 minutes)"), "ScheduleExpression"),
    "E3687 ports": (
        one(
            "AWS::EC2::SecurityGroup",
            GroupDescription="d",
            SecurityGroupIngress=[{"IpProtocol": "tcp", "FromPort": 1, "CidrIp": "10.0.0.0/8"}],
        ),
        "ToPort",
    ),
    "E3025 instance type": (
        one("AWS::EC2::Instance", ImageId="ami-00000000000000000", InstanceType="t3.huge"),
        "t3.huge",
    ),
    "E3706 group sizes": (
        one("AWS::AutoScaling::AutoScalingGroup", MinSize="3", MaxSize="1", LaunchConfigurationName="x"),
        "Max",
    ),
    "E3045 bucket ACL": (one("AWS::S3::Bucket", AccessControl="PublicRead"), "OwnershipControl"),
    "PutRetentionPolicy days": (one("AWS::Logs::LogGroup", RetentionInDays=2), "2 is not one of"),
}


@pytest.fixture(scope="module")
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


@pytest.mark.parametrize("case", WRONG)
def test_wrong_template_is_refused_with_its_reason(stacks: Stacks, case: str) -> None:
    wanted, words = WRONG[case]
    assert words in refusal(stacks, wanted)


def refusal(stacks: Stacks, wanted: Template) -> str:
    """The error of the request, or the reasons of the failed creation; empty if the stack is created."""
    try:
        name = stacks.create(wanted)
    except ClientError as error:
        return str(error)
    return stacks.failures(name) if stacks.settled(name) == "ROLLBACK_COMPLETE" else ""


def test_reserved_tag_of_a_stack_is_refused(stacks: Stacks) -> None:
    with pytest.raises(ClientError, match="aws: prefixed tag key names are not allowed"):
        stacks.create(template({"P": parameter()}), Tags=[{"Key": "aws:team", "Value": "ml"}])


def test_parameter_that_names_an_existing_network_is_accepted(stacks: Stacks) -> None:
    (vpc, *_) = stacks.aws.client("ec2").describe_vpcs()["Vpcs"]
    subnets = stacks.aws.client("ec2").describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc["VpcId"]]}])[
        "Subnets"
    ]
    declared = {
        "Vpc": {"Type": "AWS::EC2::VPC::Id", "Default": vpc["VpcId"]},
        "Subnets": {"Type": "List<AWS::EC2::Subnet::Id>", "Default": ",".join(one["SubnetId"] for one in subnets)},
    }
    stacks.deploy(template({"P": parameter({"Ref": "Vpc"})}, Parameters=declared))
