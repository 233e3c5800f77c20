"""Behaviours of moto that are replaced. All of them are in this table; moto is pinned exactly because of it.

`trainium_local.cloudformation` and `trainium_local.resources` have tables of their own for the CloudFormation side.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import moto.ec2.utils
import moto.iam.models
import moto.s3.notifications
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup, InstanceState
from moto.autoscaling.responses import AutoScalingResponse
from moto.awslambda.models import LambdaFunction
from moto.budgets.responses import BudgetsResponse
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import BaseResponse
from moto.ec2.models.amis import AmiBackend
from moto.ec2.models.elastic_network_interfaces import Attachment
from moto.ec2.models.instances import Instance, InstanceBackend
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.models.nat_gateways import NatGatewayBackend
from moto.ec2.models.tags import TagBackend
from moto.ec2.models.vpcs import VPCBackend
from moto.ec2.responses import EC2Response
from moto.ec2.responses.instances import InstanceResponse
from moto.efs.responses import EFSResponse
from moto.events.models import Rule
from moto.fsx.models import FileSystem, FSxBackend
from moto.iam.models import IAMBackend
from moto.iam.policy_validation import BaseIAMPolicyValidator, IAMPolicyDocumentValidator
from moto.s3.models import FakeBucket, S3Backend
from moto.sagemaker.models import FakeEndpointConfig, FakeSagemakerNotebookInstance, SageMakerModelBackend
from moto.servicequotas.responses import ServiceQuotasResponse
from moto.ssm.models import ParameterDict

from trainium_local import access
from trainium_local.permissions import enforcement
from trainium_local.seeds import public_images
from trainium_local.services import (
    auto_scaling,
    auto_scaling_health,
    budgets,
    capacity_blocks,
    capacity_reservations,
    console_output,
    deletions,
    event_bridge,
    file_systems,
    filters,
    instances,
    lambda_logging,
    lambda_process,
    launch_templates,
    nat_gateways,
    network_interfaces,
    placement_groups,
    policies,
    quota_requests,
    sagemaker,
    service_quotas,
    spot_placement_scores,
    tags,
    unknown_actions,
    usage_metrics,
    volumes,
)


@dataclass(frozen=True)
class Replaced:
    """One attribute of a moto class or module, what stands in its place, and why."""

    owner: type | ModuleType
    name: str
    by: Callable[..., Any] | property
    why: str


REPLACED = (
    Replaced(BaseResponse, "setup_class", enforcement.setup_class, "evaluates only a part of IAM policies"),
    Replaced(BaseResponse, "call_action", unknown_actions.call_action, "answers with a page and 500 to what it lacks"),
    Replaced(EC2Response, "create_placement_group", placement_groups.create_placement_group, "absent"),
    Replaced(EC2Response, "describe_placement_groups", placement_groups.describe_placement_groups, "absent"),
    Replaced(EC2Response, "delete_placement_group", placement_groups.delete_placement_group, "absent"),
    Replaced(
        EC2Response,
        "describe_capacity_reservations",
        capacity_reservations.describe_capacity_reservations,
        "absent",
    ),
    Replaced(EC2Response, "create_capacity_reservation", capacity_reservations.create_capacity_reservation, "absent"),
    Replaced(EC2Response, "cancel_capacity_reservation", capacity_reservations.cancel_capacity_reservation, "absent"),
    Replaced(
        EC2Response, "describe_capacity_block_offerings", capacity_blocks.describe_capacity_block_offerings, "absent"
    ),
    Replaced(EC2Response, "purchase_capacity_block", capacity_blocks.purchase_capacity_block, "absent"),
    Replaced(EC2Response, "describe_capacity_blocks", capacity_blocks.describe_capacity_blocks, "absent"),
    Replaced(EC2Response, "get_ebs_default_kms_key_id", volumes.get_ebs_default_kms_key_id, "absent"),
    Replaced(EC2Response, "get_spot_placement_scores", spot_placement_scores.get_spot_placement_scores, "absent"),
    Replaced(InstanceBackend, "run_instances", instances.run_instances, "refuses nothing, drops most of a template"),
    Replaced(
        moto.ec2.utils,
        "instance_value_in_filter_values",
        filters.instance_value_in_filter_values,
        "knows no wildcards",
    ),
    Replaced(
        InstanceResponse,
        "_parse_block_device_mapping",
        instances.parse_block_device_mapping,
        "keeps volumes that are to go with the instance",
    ),
    Replaced(Instance, "prep_nics", network_interfaces.prep_nics, "keeps one interface per device index"),
    Replaced(Attachment, "__init__", network_interfaces.attachment_init, "network card index is always 0"),
    Replaced(Instance, "terminate", instances.terminate, "tags and other interfaces of the instance stay"),
    Replaced(LaunchTemplate, "create_version", launch_templates.create_version, "user data of a new version unusable"),
    Replaced(NatGatewayBackend, "create_nat_gateway", nat_gateways.create_nat_gateway, "a refused one leaves a part"),
    Replaced(NatGatewayBackend, "delete_nat_gateway", nat_gateways.delete_nat_gateway, "its interface and tags stay"),
    Replaced(VPCBackend, "delete_vpc", deletions.delete_vpc, "its default network ACL stays"),
    Replaced(VPCBackend, "delete_vpc_endpoints", deletions.delete_vpc_endpoints, "the endpoint and its tags stay"),
    Replaced(TagBackend, "describe_tags", tags.describe_tags, "ignores the filter tag:KEY"),
    Replaced(
        AutoScalingBackend,
        "create_auto_scaling_group",
        auto_scaling.create_auto_scaling_group,
        "a refused group stays, with its instances",
    ),
    Replaced(
        FakeAutoScalingGroup,
        "replace_autoscaling_group_instances",
        auto_scaling.launch_instances,
        "launches the default template version into one subnet; a refused launch fails the call",
    ),
    Replaced(
        FakeAutoScalingGroup,
        "set_desired_capacity",
        auto_scaling.set_desired_capacity,
        "ends the oldest instances whatever the termination policy",
    ),
    Replaced(
        InstanceState,
        "launch_template",
        property(auto_scaling.instance_launch_template),
        "shows the default version, not the one launched",
    ),
    Replaced(
        AutoScalingResponse, "describe_scaling_activities", auto_scaling.describe_scaling_activities, "always empty"
    ),
    Replaced(AutoScalingResponse, "put_scaling_policy", auto_scaling.put_scaling_policy, "answers without the ARN"),
    Replaced(
        AutoScalingBackend,
        "set_instance_health",
        auto_scaling_health.set_instance_health,
        "an unhealthy instance stays for ever",
    ),
    Replaced(
        AutoScalingBackend,
        "resume_processes",
        auto_scaling_health.resume_processes,
        "unhealthy instances are not replaced then",
    ),
    Replaced(EC2Response, "get_console_output", console_output.get_console_output, "the same text for every instance"),
    Replaced(Rule, "send_to_targets", event_bridge.send_to_targets, "calls no functions"),
    Replaced(
        FakeBucket,
        "_log_permissions_enabled_policy",
        lambda *_args, **_given: True,
        "refuses a target before it has the policy that lets S3 write",
    ),
    Replaced(
        S3Backend, "log_incoming_request", lambda *_args: None, "writes at once, so that no target can be deleted"
    ),
    Replaced(
        moto.s3.notifications,
        "_send_event_bridge_message",
        event_bridge.send_object_event,
        "not what S3 says, and the caller waits for all that follows",
    ),
    Replaced(ServiceQuotasResponse, "get_service_quota", service_quotas.get_service_quota, "no EC2 quotas"),
    Replaced(ServiceQuotasResponse, "list_service_quotas", service_quotas.list_service_quotas, "absent"),
    Replaced(
        ServiceQuotasResponse, "get_aws_default_service_quota", service_quotas.get_aws_default_service_quota, "absent"
    ),
    Replaced(
        ServiceQuotasResponse,
        "list_aws_default_service_quotas",
        service_quotas.list_aws_default_service_quotas,
        "no EC2 quotas",
    ),
    Replaced(
        ServiceQuotasResponse, "request_service_quota_increase", quota_requests.request_service_quota_increase, "absent"
    ),
    Replaced(
        ServiceQuotasResponse,
        "list_requested_service_quota_change_history_by_quota",
        quota_requests.list_requested_service_quota_change_history_by_quota,
        "absent",
    ),
    Replaced(CloudWatchResponse, "get_metric_statistics", usage_metrics.get_metric_statistics, "nothing in AWS/Usage"),
    Replaced(LambdaFunction, "invoke", lambda_process.invoke, "needs Docker; an Event invocation blocks the caller"),
    Replaced(LambdaFunction, "_invoke_lambda", lambda_process.invoke_lambda, "needs Docker"),
    Replaced(LambdaFunction, "__init__", lambda_logging.init, "drops LoggingConfig"),
    Replaced(LambdaFunction, "get_configuration", lambda_logging.get_configuration, "drops LoggingConfig"),
    Replaced(LambdaFunction, "update_configuration", lambda_logging.update_configuration, "drops LoggingConfig"),
    Replaced(moto.iam.models, "random_alphanumeric", access.random_secret, "secret keys can be foretold"),
    Replaced(IAMBackend, "create_policy", policies.create_policy, "no telling managed policies from inline ones"),
    Replaced(BaseIAMPolicyValidator, "_validate_version", policies.validate_version, "refuses inline policies of 2008"),
    Replaced(
        IAMPolicyDocumentValidator,
        "_validate_condition_syntax",
        policies.validate_condition_syntax,
        "refuses numbers",
    ),
    Replaced(BudgetsResponse, "update_budget", budgets.update_budget, "absent"),
    Replaced(AmiBackend, "_load_amis", public_images.load_amis, "no Neuron images, others of 2017"),
    Replaced(
        ParameterDict, "_check_loading_status", public_images.check_loading_status, "no parameters of most images"
    ),
    Replaced(FSxBackend, "create_file_system", file_systems.create_file_system, "in no subnet, refuses nothing"),
    Replaced(FSxBackend, "describe_file_systems", file_systems.describe_file_systems, "an unknown id is no error"),
    Replaced(FSxBackend, "delete_file_system", file_systems.delete_file_system, "its tags stay"),
    Replaced(FileSystem, "to_dict", file_systems.to_dict, "no state, network, version or mount name"),
    Replaced(EFSResponse, "put_backup_policy", file_systems.put_backup_policy, "absent"),
    Replaced(FakeEndpointConfig, "validate_instance_type", sagemaker.accept_any_instance_type, "list ends in 2021"),
    Replaced(
        FakeSagemakerNotebookInstance, "validate_instance_type", sagemaker.accept_any_instance_type, "list ends in 2021"
    ),
    Replaced(SageMakerModelBackend, "create_cluster", sagemaker.create_cluster, "takes options to be required"),
)


def install(*, endpoint: str) -> None:
    """Replace everything in the table; Lambda functions call back to `endpoint`."""
    for replaced in REPLACED:
        setattr(replaced.owner, replaced.name, replaced.by)
    lambda_process.use_endpoint(endpoint)
