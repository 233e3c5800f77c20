"""An EKS cluster with two groups of Trainium nodes, and what training jobs need in AWS."""

from pathlib import Path

from aws_cdk import App, CfnOutput, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks

from trainium_cdk import EksJobs, NeuronNodeGroup, NodeVerification, Plan

REGION = "us-east-2"
IMAGE = (
    f"763104351884.dkr.ecr.{REGION}.amazonaws.com/pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.30.0-ubuntu24.04"
)
ADD_ONS = ("eks-pod-identity-agent", "eks-node-monitoring-agent")

app = App()
stack = Stack(app, "TrainingOnEks", env=Environment(region=REGION))
vpc = ec2.Vpc(stack, "Vpc", availability_zones=[f"{REGION}{letter}" for letter in "abc"], nat_gateways=1)
cluster = eks.Cluster(
    stack,
    "Cluster",
    cluster_name="training",
    version=eks.KubernetesVersion.V1_35,
    vpc=vpc,
    default_capacity_type=eks.DefaultCapacityType.NODEGROUP,
    default_capacity=0,
)
admin = app.node.try_get_context("admin")
if admin:
    cluster.grant_cluster_admin("Admin", admin)
system = cluster.add_nodegroup_capacity(
    "System",
    instance_types=[ec2.InstanceType("m7i.large")],
    ami_type=eks.NodegroupAmiType.AL2023_X86_64_STANDARD,  # EKS has no images of the default, AL2, from 1.33 on.
    min_size=2,
    desired_size=2,
    max_size=3,
)
for name in ADD_ONS:
    eks.Addon(stack, name, cluster=cluster, addon_name=name).node.add_dependency(system)

# Nodes are verified in the image of the jobs.
verification = NodeVerification(stack, "Verification", image=IMAGE)
# For the device plugin. The nodes are launched when someone raises the desired size.
NeuronNodeGroup(
    stack,
    "Trn1",
    cluster=cluster,
    instance_type=ec2.InstanceType("trn1.32xlarge"),
    nodes=2,
    desired_nodes=0,
    cluster_name="eks-trn1",
    node_verification=verification,
)
# For the DRA drivers.
NeuronNodeGroup(
    stack,
    "Trn2",
    cluster=cluster,
    instance_type=ec2.InstanceType("trn2.48xlarge"),
    nodes=2,
    desired_nodes=0,
    cluster_name="eks-trn2",
    node_verification=verification,
)

# For `trn run --on eks` on the first group: a bucket, a compile cache, and the role of the pods.
plan = Plan.of(
    instance_type="trn1.32xlarge",
    region=REGION,
    nodes=2,
    cluster_name="eks-trn1",
    stacks=("eks",),
    eks_cluster="training",
    eks_namespace="training",
    eks_image=IMAGE,
)
EksJobs(stack, "Jobs", plan=plan).node.add_dependency(cluster)
CfnOutput(stack, "NodeRecords", value=f"s3://{verification.bucket.bucket_name}/nodes/")
app.synth()
Path(app.outdir, "node-verification.json").write_text(verification.manifest)
