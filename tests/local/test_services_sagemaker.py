"""SageMaker accepts an instance type and an instance group that moto refuses."""

from tests.local.conftest import EmbeddedAws

ROLE = "arn:aws:iam::123456789012:role/sagemaker"


def test_endpoint_accepts_a_trainium_type(embedded_aws: EmbeddedAws) -> None:
    sagemaker = embedded_aws.client("sagemaker")
    image = "123456789012.dkr.ecr.us-west-2.amazonaws.com/model:1"
    sagemaker.create_model(ModelName="m", ExecutionRoleArn=ROLE, PrimaryContainer={"Image": image})
    variant = {"VariantName": "v", "ModelName": "m", "InitialInstanceCount": 1, "InstanceType": "ml.trn1.32xlarge"}
    sagemaker.create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant])
    shown = sagemaker.describe_endpoint_config(EndpointConfigName="c")["ProductionVariants"][0]
    assert shown["InstanceType"] == "ml.trn1.32xlarge"


def test_instance_group_needs_no_threads_per_core_or_scripts(embedded_aws: EmbeddedAws) -> None:
    sagemaker = embedded_aws.client("sagemaker")
    group = {
        "InstanceCount": 1,
        "InstanceGroupName": "controller",
        "InstanceType": "ml.m5.xlarge",
        "ExecutionRole": ROLE,
    }
    sagemaker.create_cluster(ClusterName="bare", InstanceGroups=[group])
    (shown,) = sagemaker.describe_cluster(ClusterName="bare")["InstanceGroups"]
    sagemaker.delete_cluster(ClusterName="bare")
    assert "LifeCycleConfig" not in shown
