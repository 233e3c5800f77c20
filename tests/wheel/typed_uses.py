"""Passes classes of the CDK to parameters that take their interfaces. pyright checks this file, and tests run it.

aws-cdk-lib names parameters of some classes differently than the interfaces that they implement; an app should need no
cast for the arguments of these constructs.
"""

from aws_cdk import Duration, Size, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_elasticloadbalancingv2 as elbv2
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

from trainium_cdk import (
    Budget,
    CompileCache,
    ElasticFileSystem,
    ICompileCache,
    INeuronFleet,
    LustreFileSystem,
    NeuronFleet,
    NeuronLaunchTemplate,
    NodeChecks,
    NodeImage,
    PilotEnd,
    SageMakerTraining,
)

TRN1 = ec2.InstanceType("trn1.32xlarge")


def give_everything(stack: Stack, ec2_service: iam.IPrincipal) -> None:
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a", "us-west-2b"], nat_gateways=1)
    group = ec2.SecurityGroup(stack, "Group", vpc=vpc)
    bucket = s3.Bucket(stack, "Bucket")
    key = kms.Key(stack, "Key")
    role = iam.Role(stack, "Role", assumed_by=ec2_service)
    subnet = ec2.PrivateSubnet(
        stack, "Subnet", availability_zone="us-west-2b", cidr_block="10.0.192.0/24", vpc_id=vpc.vpc_id
    )
    homes = ElasticFileSystem(stack, "Homes", vpc=vpc, subnet=subnet)
    scratch = LustreFileSystem(stack, "Scratch", vpc=vpc, subnet=subnet, size=Size.gibibytes(1200))
    fleet = NeuronFleet(
        stack,
        "Fleet",
        instance_type=TRN1,
        cluster_name="train",
        vpc=vpc,
        security_groups=[group],
        placement_group=ec2.PlacementGroup(stack, "Placement", strategy=ec2.PlacementGroupStrategy.CLUSTER),
        role=role,
        cache=CompileCache(stack, "Cache", bucket=bucket),
        file_systems=[homes, scratch],
        image=NodeImage.custom(ec2.GenericLinuxImage({"us-west-2": "ami-0123456789abcdef0"})),
        root_volume_size=Size.gibibytes(600),
        block_devices=[ec2.BlockDevice(device_name="/dev/sdf", volume=ec2.BlockDeviceVolume.ebs(100))],
        volume_key=key,
        encryption_key=key,
        checks=NodeChecks.observe(suppress=["nofile"]),
        end=PilotEnd.after(Duration.days(1), action="destroy"),
        budget=Budget.usd(100, stop=True),
    )
    imported = NeuronFleet.from_neuron_fleet_attributes(
        stack,
        "Imported",
        cluster_name="other",
        auto_scaling_group_name="other",
        role=role,
        security_group=group,
        records_bucket=bucket,
        sleep_function_name="sleep",
        controller_function_name="controller",
    )
    training = SageMakerTraining(stack, "Training", cluster_name="train", vpc=vpc, encryption_key=key)
    NeuronLaunchTemplate(
        stack,
        "Template",
        instance_type=TRN1,
        security_groups=[fleet.security_group],
        instance_profile=iam.InstanceProfile(stack, "Profile"),
        user_data=ec2.UserData.for_linux(),
    )
    grant(stack, fleet, imported, training)
    connect(stack, vpc, fleet, imported)
    balance(stack, vpc, fleet)
    watch(stack, fleet, imported)


def grant(stack: Stack, fleet: NeuronFleet, imported: INeuronFleet, training: SageMakerTraining) -> None:
    own: ICompileCache = CompileCache(stack, "Other", encryption_key=kms.Key(stack, "OtherKey"))
    code, runtime = lambda_.Code.from_inline("handler = print"), lambda_.Runtime.PYTHON_3_13
    own.grant_read(lambda_.Function(stack, "Function", code=code, handler="index.handler", runtime=runtime))
    own.grant_read_write(iam.Role.from_role_arn(stack, "Elsewhere", "arn:aws:iam::444455556666:role/elsewhere"))
    own.grant_read(iam.AccountPrincipal("444455556666"))
    own.grant_read_write(iam.User(stack, "User"))
    own.grant_maintenance(imported)
    queue = sqs.Queue(stack, "Queue")
    for one in (fleet, imported, training):
        queue.grant_consume_messages(one)
    for one in (fleet, imported):
        one.grant_run_jobs(iam.User(stack, f"{one.node.id}Runner"))
        one.grant_operate(iam.User(stack, f"{one.node.id}Operator"))
        one.add_to_role_policy(iam.PolicyStatement(actions=["ecr:GetAuthorizationToken"], resources=["*"]))


def connect(stack: Stack, vpc: ec2.IVpc, fleet: NeuronFleet, imported: INeuronFleet) -> None:
    files = efs.FileSystem(stack, "Files", vpc=vpc)
    for one in (fleet, imported):
        files.connections.allow_default_port_from(one)
    imported.connections.allow_from(fleet, ec2.Port.tcp(8080))


def balance(stack: Stack, vpc: ec2.IVpc, fleet: NeuronFleet) -> None:
    application = elbv2.ApplicationTargetGroup(stack, "Application", vpc=vpc, port=80, targets=[fleet])
    network = elbv2.NetworkTargetGroup(stack, "Network", vpc=vpc, port=80, targets=[fleet])
    fleet.attach_to_application_target_group(application)
    fleet.attach_to_network_target_group(network)


def watch(stack: Stack, fleet: NeuronFleet, imported: INeuronFleet) -> None:
    queue = sqs.Queue(stack, "Events")
    for one in (fleet, imported):
        one.on_node_failed("Failed", targets.SqsQueue(queue))
        one.metric_failed_nodes(period=Duration.minutes(1)).create_alarm(
            stack, f"{one.node.id}Bad", threshold=1, evaluation_periods=1
        )
        one.metric_controller_errors().create_alarm(stack, f"{one.node.id}Errors", threshold=3, evaluation_periods=1)
        autoscaling.LifecycleHook(
            stack,
            f"{one.node.id}Hook",
            auto_scaling_group=one.auto_scaling_group,
            lifecycle_transition=autoscaling.LifecycleTransition.INSTANCE_TERMINATING,
        )
