"""An app with every public construct. pyright checks this file, and a test synthesises it."""

from aws_cdk import App, Duration, Environment, RemovalPolicy, Size, Stack, Stage
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks
from aws_cdk import aws_eks_v2 as eks_v2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns

import trainium_cdk as trn

REGION, TYPE = "us-west-2", ec2.InstanceType("trn1.32xlarge")


def parts(stack: Stack) -> trn.INeuronFleet:
    network = trn.ClusterNetwork(stack, "Network", zone_id="usw2-az4")
    cache: trn.ICompileCache = trn.CompileCache(stack, "Cache", expiration=Duration.days(30))
    cache.apply_removal_policy(RemovalPolicy.RETAIN)
    sleep = trn.SleepSwitch(stack, "Sleep")
    homes = trn.ElasticFileSystem(stack, "Homes", vpc=network.vpc, subnet=network.subnet)
    scratch = trn.LustreFileSystem(stack, "Scratch", vpc=network.vpc, subnet=network.subnet, size=Size.gibibytes(1200))
    fleet = trn.NeuronFleet(
        stack,
        "Fleet",
        instance_type=TYPE,
        nodes=2,
        cluster_name="parts",
        capacity=trn.Capacity.spot(),
        vpc=network.vpc,
        cache=cache,
        file_systems=[homes, scratch],
        image=trn.NodeImage.dlami(),
        setup=trn.SetupScript.from_text("echo ready"),
        checks=trn.NodeChecks.observe(),
        end=trn.PilotEnd.after(Duration.hours(8), action="destroy"),
        budget=trn.Budget.usd(1000, stop=True),
        idle_limit=Duration.minutes(30),
        notices=sns.Topic(stack, "Notices"),
        sleep=sleep,
    )
    fleet.add_outputs()
    group: ec2.ISecurityGroup = trn.EfaSecurityGroup(stack, "Group", vpc=network.vpc)
    template: ec2.ILaunchTemplate = fleet.launch_template
    assert template.version_number
    trn.NeuronLaunchTemplate(
        stack,
        "Template",
        instance_type=TYPE,
        security_groups=[group],
        instance_profile=iam.InstanceProfile(stack, "Profile"),
    )
    trn.NeuronSubnet(stack, "Subnet", vpc=network.vpc, instance_type=TYPE)
    trn.QuotaCheck(stack, "Quota", instance_type=TYPE, nodes=2)
    trn.SageMakerTraining(stack, "Training", cluster_name="parts")
    node_groups(stack, network.vpc)
    return fleet


def node_groups(stack: Stack, vpc: ec2.IVpc) -> None:
    name, group_id = "prod", "sg-0123456789abcdef0"
    old: eks.ICluster = eks.Cluster.from_cluster_attributes(
        stack, "Old", cluster_name=name, vpc=vpc, cluster_security_group_id=group_id
    )
    new: eks_v2.ICluster = eks_v2.Cluster.from_cluster_attributes(
        stack, "New", cluster_name=name, vpc=vpc, cluster_security_group_id=group_id
    )
    verification = trn.NodeVerification(stack, "Verification", image="training:1")
    trn.NeuronNodeGroup(stack, "OldNodes", cluster=old, instance_type=TYPE, node_verification=verification)
    group = trn.NeuronNodeGroup(stack, "NewNodes", cluster=new, instance_type=TYPE, capacity=trn.Capacity.spot())
    scheduler = trn.PodRole(stack, "Scheduler", cluster=new, service_account="scheduler")
    group.grant_scale(scheduler)


def planned(app: App, settings: trn.Plan) -> None:
    trn.TrainiumCluster(trn.PlanStack(Stage(app, "A"), "TrnClusterStack", plan=settings), "Cluster", plan=settings)
    trn.PlannedTraining(trn.PlanStack(Stage(app, "B"), "SageMakerTrainingStack", plan=settings), "T", plan=settings)
    trn.PcsCluster(trn.PlanStack(Stage(app, "C"), "PcsStack", plan=settings), "Slurm", plan=settings)
    on_eks = settings.but(stacks=("eks",), eks_cluster="prod")
    trn.EksJobs(trn.PlanStack(Stage(app, "D"), "EksJobsStack", plan=on_eks), "Jobs", plan=on_eks)


def every_construct(app: App) -> None:
    try:
        fleet = parts(Stack(app, "Parts", env=Environment(region=REGION)))
        planned(
            app,
            trn.Plan(instance_type=TYPE.to_string(), region=REGION, nodes=2, stacks=("cluster", "sagemaker", "pcs")),
        )
    except (trn.PropsError, trn.PlanError) as error:
        raise SystemExit(str(error)) from error
    other = Stack(app, "Pipeline", env=Environment(region=REGION))
    imported = trn.NeuronFleet.from_neuron_fleet_attributes(other, "Fleet", cluster_name=fleet.cluster_name)
    imported.metric_failed_nodes(period=Duration.minutes(1)).create_alarm(
        other, "Failed", threshold=1, evaluation_periods=1
    )
