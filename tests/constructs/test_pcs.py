"""PcsCluster: the Slurm settings that AWS PCS receives, the verification of nodes at boot, and their dependencies."""

import hashlib
from typing import Any, cast

import boto3
import pytest

from tests.constructs.plans import reserved
from tests.constructs.synth import Json, Template, a_plan, as_text, granted, new_stack, statements, synthesize
from tests.constructs.training import pcs_template
from tests.stacks.other_stacks import PCS
from tests.stacks.test_api_models import model_errors
from trainium_cdk import PcsCluster
from trainium_core.engines.pcs.slurm_settings import CLUSTER_SETTINGS, queue_settings, queues
from trainium_core.plan.node_settings import node_settings
from trainium_core.problems import PlanError
from trainium_userdata.pcs_image import pcs_image_script
from trainium_userdata.script import slurm_script

IMAGE = "ami-0123456789abcdef0"
CLUSTER, GROUP, QUEUE = "AWS::PCS::Cluster", "AWS::PCS::ComputeNodeGroup", "AWS::PCS::Queue"


def template(**settings: Any) -> Template:
    return pcs_template(pcs_ami=IMAGE, **settings)


def groups(made: Template) -> dict[str, Json]:
    return {group["Properties"]["Name"]: group["Properties"] for group in made.resources(GROUP).values()}


def pairs(settings: list[Json]) -> dict[str, str]:
    return {setting["ParameterName"]: setting["ParameterValue"] for setting in settings}


def test_cluster_has_the_slurm_settings_of_the_plan() -> None:
    settings: Json = {"pcs_accounting": True, "pcs_idle_minutes": 7, "pcs_slurm_version": "25.11", "nodes": 40}
    cluster = template(**settings).properties(CLUSTER)
    assert (cluster["Name"], cluster["Size"]) == ("trn-pilot", "MEDIUM")
    assert cluster["Scheduler"] == {"Type": "SLURM", "Version": "25.11"}
    slurm = cluster["SlurmConfiguration"]
    assert (slurm["Accounting"]["Mode"], slurm["ScaleDownIdleTimeInSeconds"]) == ("STANDARD", 420)
    assert pairs(slurm["SlurmCustomSettings"]) == CLUSTER_SETTINGS


def test_ids_of_the_cluster_and_its_groups_are_attributes() -> None:
    stack = new_stack()
    slurm = PcsCluster(stack, "Slurm", plan=a_plan(stacks=("pcs",), pcs_ami=IMAGE))
    made = synthesize(stack)
    (cluster,), by_name = (
        made.resources(CLUSTER),
        {g["Properties"]["Name"]: name for name, g in made.resources(GROUP).items()},
    )
    assert stack.resolve(slurm.cluster_id) == {"Fn::GetAtt": [cluster, "Id"]}
    assert stack.resolve(slurm.node_group_id) == {"Fn::GetAtt": [by_name["nodes"], "Id"]}
    assert stack.resolve(slurm.login_group_id) == {"Fn::GetAtt": [by_name["login-m7i-large"], "Id"]}


def test_group_scales_from_zero_and_offers_devices() -> None:
    nodes = groups(template())["nodes"]
    assert nodes["ScalingConfiguration"] == {"MinInstanceCount": 0, "MaxInstanceCount": 2}
    assert nodes["SlurmConfiguration"]["GresCustomSettings"] == [{"Name": "neuron", "Count": "16"}]
    assert pairs(nodes["SlurmConfiguration"]["SlurmCustomSettings"])["Gres"] == "neuron:16"


@pytest.mark.parametrize(
    ("settings", "option", "market"),
    [
        ({}, "ONDEMAND", None),
        ({"capacity": "spot"}, "SPOT", None),
        ({"capacity": "reservation", **reserved("reservation")}, "ONDEMAND", None),
        (
            {"capacity": "reservation", "pcs_interruptible": True, **reserved("reservation")},
            "INTERRUPTIBLE_CAPACITY_RESERVATION",
            "interruptible-capacity-reservation",
        ),
        (
            {
                "capacity": "capacity-block",
                "instance_type": "trn2.48xlarge",
                "region": "us-east-2",
                **reserved("capacity-block"),
            },
            "CAPACITY_BLOCK",
            "capacity-block",
        ),
    ],
)
def test_purchase_option_and_market_of_the_template_agree(settings: Json, option: str, market: str | None) -> None:
    made = template(**settings)
    assert groups(made)["nodes"]["PurchaseOption"] == option
    templates = made.resources("AWS::EC2::LaunchTemplate").values()
    all_data = [template["Properties"]["LaunchTemplateData"] for template in templates]
    data = next(data for data in all_data if "InstanceType" in data)
    assert data.get("InstanceMarketOptions", {}).get("MarketType") == market
    assert ("CapacityReservationSpecification" in data) == ("reservation_id" in settings)


def test_controller_of_a_capacity_block_writes_notices_into_the_bucket_of_the_nodes() -> None:
    block: Json = {"instance_type": "trn2.48xlarge", "region": "us-east-2", **reserved("capacity-block")}
    made = template(capacity="capacity-block", **block)
    controllers = [
        function["Properties"]["Environment"]["Variables"]
        for function in made.resources("AWS::Lambda::Function").values()
        if "CAPACITY_BLOCK" in function["Properties"].get("Environment", {}).get("Variables", {})
    ]
    (variables,) = controllers
    assert "GROUP" not in variables
    written = {as_text(arn) for action, arn in granted(statements(made)) if action == "s3:PutObject"}
    assert any(arn.endswith("/cluster.json") for arn in written)


def test_notices_of_jobs_need_a_controller_without_a_schedule() -> None:
    made = template(job_notices=True)
    (topic,) = made.resources("AWS::SNS::Topic")
    functions = made.resources("AWS::Lambda::Function").values()
    settings = [function["Properties"].get("Environment", {}).get("Variables", {}) for function in functions]
    (controller,) = [variables for variables in settings if "JOB_NOTICES" in variables]
    assert (controller["JOB_NOTICES"], "TOPIC" in controller) == ({"Ref": topic}, False)
    assert made.resources("AWS::Scheduler::Schedule") == {}
    assert ("sns:Publish", f"${{{topic}}}") in granted(statements(made))


def test_lifecycle_scripts_run_before_slurm_at_every_boot() -> None:
    made, node = template(), node_settings(a_plan(stacks=("pcs",), ami=IMAGE, pcs_ami=IMAGE))
    for name, text in (("nodes", slurm_script(node, "slurm")), ("login-m7i-large", slurm_script(node, "login"))):
        actions = groups(made)[name]["NodeLifecycleActions"]
        (script,) = actions["Stages"]["NodeBootstrapped"]
        assert (script["OnError"], script["ExecutionPolicy"]) == ("TERMINATE", "EVERY_BOOT")
        assert script["ScriptSource"]["Checksum"] == hashlib.sha256(text.encode()).hexdigest()
        assert as_text(script["ScriptSource"]["S3VersionId"]).endswith(".VersionId}")
        assert len(text.encode()) <= 2 * 1024 * 1024


def test_queues_of_the_plan_are_created_after_group_and_guard() -> None:
    settings: Json = {"pcs_queues": ("short:10", "long")}
    made, plan = template(**settings), a_plan(**settings, stacks=("pcs",), pcs_ami=IMAGE)
    by_name = {queue["Properties"]["Name"]: (i, queue["Properties"]) for i, queue in made.resources(QUEUE).items()}
    assert list(by_name) == ["short", "long"]
    for queue in queues(plan):
        logical_id, properties = by_name[queue.name]
        assert pairs(properties["SlurmConfiguration"]["SlurmCustomSettings"]) == queue_settings(plan, queue)
        before = [made.resources()[name] for name in made.before(logical_id)]
        assert {GROUP, CLUSTER} <= {resource["Type"] for resource in before}
        assert "guard" in str(before).lower()


def test_node_group_depends_on_the_resources_of_nodes() -> None:
    made = pcs_template(**{key: value for key, value in PCS["pcs-spot"].items() if key != "stacks"})
    nodes = next(i for i, group in made.resources(GROUP).items() if group["Properties"]["Name"] == "nodes")
    types = {made.resources()[name]["Type"] for name in made.before(nodes)}
    needed = {
        "AWS::IAM::Policy",
        "AWS::S3::Bucket",
        "AWS::EC2::NatGateway",
        "AWS::FSx::FileSystem",
        "AWS::EFS::MountTarget",
    }
    assert needed | {"Custom::TrnScriptCopy", "Custom::TrnQuotaCheck", "AWS::Lambda::Function"} <= types


def test_nodes_have_a_role_that_aws_pcs_accepts() -> None:
    made = template()
    assert "/aws-pcs/" in {role["Properties"].get("Path") for role in made.resources("AWS::IAM::Role").values()}
    actions = {action for action, _ in granted(statements(made))}
    assert "pcs:RegisterComputeNodeGroupInstance" in actions
    assert not {action for action in actions if action.startswith("secretsmanager:")}


def test_closed_network_reaches_aws_pcs_by_its_endpoint() -> None:
    closed = template(egress="vpc-endpoints")
    endpoints = closed.resources("AWS::EC2::VPCEndpoint").values()
    names = {as_text(endpoint["Properties"]["ServiceName"]).rpartition(".")[2] for endpoint in endpoints}
    assert names >= {"pcs", "ssm", "ssmmessages"}
    assert not closed.resources("AWS::EC2::NatGateway")


@pytest.mark.parametrize("egress", ["none", "vpc-endpoints"])
def test_unusable_network_is_refused(egress: str) -> None:
    with pytest.raises(PlanError, match="trn:egress"):
        a_plan(stacks=("pcs",), egress=egress, **({"pcs_ami": IMAGE} if egress == "none" else {}))


def test_login_node_has_the_image_of_the_nodes_and_a_volume_with_the_included_throughput() -> None:
    templates = template().resources("AWS::EC2::LaunchTemplate").values()
    data = [one["Properties"]["LaunchTemplateData"] for one in templates]
    assert {one["ImageId"] for one in data} == {IMAGE}
    volumes = {"InstanceType" in one: one["BlockDeviceMappings"][0]["Ebs"] for one in data}
    assert (volumes[True]["Throughput"], volumes[False]["Throughput"]) == (500, 125)
    assert volumes[True]["VolumeSize"] == volumes[False]["VolumeSize"]


def test_login_node_can_be_left_out() -> None:
    made = template(pcs_login=False)
    assert list(groups(made)) == ["nodes"]
    assert {"Session", "SlurmLogin"} & made.json["Outputs"].keys() == set()


def test_logs_are_delivered_into_a_group_of_the_stack() -> None:
    made = template()
    kinds = {source["Properties"]["LogType"] for source in made.resources("AWS::Logs::DeliverySource").values()}
    assert kinds == {"PCS_SCHEDULER_LOGS", "PCS_JOBCOMP_LOGS"}
    arn = as_text(made.properties("AWS::Logs::DeliveryDestination")["DestinationResourceArn"])
    assert arn.endswith(tuple(f":log-group:${{{group}}}" for group in made.resources("AWS::Logs::LogGroup")))
    assert made.properties("AWS::Logs::ResourcePolicy")


def test_log_of_the_image_build_is_deleted_with_the_stack() -> None:
    made = pcs_template()
    name = made.properties("AWS::ImageBuilder::ImageRecipe")["Name"]
    log = made.properties("AWS::ImageBuilder::Image")["LoggingConfiguration"]["LogGroupName"]["Ref"]
    group = made.resources("AWS::Logs::LogGroup")[log]
    assert group["Properties"]["LogGroupName"] == f"/aws/imagebuilder/{name}"
    assert group["DeletionPolicy"] == "Delete"


def test_another_login_type_has_another_group_name() -> None:
    names = {
        group["Properties"]["Name"]
        for kind in ("m7i.large", "m7i.xlarge")
        for group in pcs_template(pcs_login_instance_type=kind).resources(GROUP).values()
    }
    assert names == {"nodes", "login-m7i-large", "login-m7i-xlarge"}


def test_image_is_named_by_the_digest_of_its_recipe() -> None:
    names = set[str]()
    for settings in ({}, {"ami": "ami-0fedcba9876543210"}, {"region": "us-east-1"}):
        properties = pcs_template(**settings).properties("AWS::ImageBuilder::ImageRecipe")
        names.add(properties["Name"])
    assert len(names) == 3
    again = pcs_template(nodes=3).properties("AWS::ImageBuilder::ImageRecipe")
    assert again["Name"] in names
    assert again["ParentImage"].startswith("ssm:/aws/service/neuron/")


def test_image_script_verifies_every_archive_before_it_is_run() -> None:
    script = pcs_image_script("us-west-2")
    assert script.count('install_archive "') == 3
    assert script.index('verify "$archive" "$checksum"') < script.index("./installer.sh")
    assert "1C2432C1862F64D1F90A239A7EEF030EDDF5C21C" in script


@pytest.mark.parametrize("name", PCS)
def test_aws_pcs_accepts_the_group_cluster_and_queues(name: str) -> None:
    made = pcs_template(**{key: value for key, value in PCS[name].items() if key != "stacks"})
    model: Any = boto3.client("pcs", "us-west-2").meta.service_model
    calls = {CLUSTER: "CreateCluster", GROUP: "CreateComputeNodeGroup", QUEUE: "CreateQueue"}
    renamed = {"Name": {CLUSTER: "clusterName", GROUP: "computeNodeGroupName", QUEUE: "queueName"}}
    for kind, operation in calls.items():
        for resource in made.resources(kind).values():
            parameters = {
                renamed.get(key, {}).get(
                    kind, "clusterIdentifier" if key == "ClusterId" else key[:1].lower() + key[1:]
                ): _as_parameter(value)
                for key, value in resource["Properties"].items()
            }
            assert model_errors(model.operation_model(operation), parameters) == []


def _as_parameter(value: Any, name: str = "") -> Any:
    """A property of a template as the API of AWS PCS names it, with a plausible value for a reference."""
    if isinstance(value, list):
        return [_as_parameter(part, name) for part in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    parts = cast("dict[str, Any]", value)
    if parts.keys() & {"Ref", "Fn::GetAtt", "Fn::Join"}:
        return "arn:aws:iam::123456789012:instance-profile/p"
    if "TemplateId" in parts:
        return {"id": _as_parameter(parts["TemplateId"]), "version": _as_parameter(parts["Version"])}
    if name == "gresCustomSettings":
        return parts
    lowered = {key[:1].lower() + key[1:]: part for key, part in parts.items()}
    return {key: _as_parameter(part, key) for key, part in lowered.items()}
