"""Behaviours of moto that are replaced. All of them are in this table; moto is pinned exactly because of it.

`trainium_local.cloudformation` has a table of its own for the CloudFormation side.
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
    sagemaker,
    service_quotas,
    spot_placement_scores,
    tags,
    unknown_actions,
    vcpu_use,
    volumes,
)


@dataclass(frozen=True)
class Replaced:
    """One attribute of a moto class or module, what stands in its place, and why."""

    owner: type | ModuleType
    name: str
    by: Any
    why: str


def _absent(owner: type, *by: Callable[..., Any]) -> tuple[Replaced, ...]:
    return tuple(Replaced(owner, one.__name__, one, "absent") for one in by)


def _around(owner: type, by: Callable[..., Any], why: str, name: str = "") -> Replaced:
    """`by` takes what it replaces as its first argument."""
    name = name or by.__name__
    found: Any = getattr(owner, name)
    original = found.fget if isinstance(found, property) else found

    def wrapped(*arguments: Any, **named: Any) -> Any:
        return by(original, *arguments, **named)

    return Replaced(owner, name, property(wrapped) if isinstance(found, property) else wrapped, why)


def _replaced(owner: type | ModuleType, by: Callable[..., Any], why: str, name: str = "") -> Replaced:
    return Replaced(owner, name or by.__name__, by, why)


REPLACED = (
    *_absent(
        EC2Response,
        capacity_blocks.describe_capacity_block_offerings,
        capacity_blocks.describe_capacity_blocks,
        capacity_blocks.purchase_capacity_block,
        capacity_reservations.cancel_capacity_reservation,
        capacity_reservations.create_capacity_reservation,
        capacity_reservations.describe_capacity_reservations,
        placement_groups.create_placement_group,
        placement_groups.delete_placement_group,
        placement_groups.describe_placement_groups,
        spot_placement_scores.get_spot_placement_scores,
        volumes.get_ebs_default_kms_key_id,
    ),
    *_absent(
        ServiceQuotasResponse,
        service_quotas.list_requested_service_quota_change_history_by_quota,
        service_quotas.request_service_quota_increase,
        service_quotas.get_aws_default_service_quota,
        service_quotas.list_service_quotas,
    ),
    *_absent(BudgetsResponse, budgets.update_budget),
    *_absent(EFSResponse, file_systems.put_backup_policy),
    _replaced(BaseResponse, enforcement.setup_class, "evaluates only a part of IAM policies"),
    _around(BaseResponse, unknown_actions.call_action, "answers with a page and 500 to what it lacks"),
    _around(InstanceBackend, instances.run_instances, "refuses nothing, drops most of a template"),
    _around(
        InstanceResponse,
        instances.parse_block_device_mapping,
        "keeps volumes that are to go with the instance",
        "_parse_block_device_mapping",
    ),
    _around(Instance, instances.terminate, "tags and other interfaces of the instance stay"),
    _around(Instance, network_interfaces.prep_nics, "keeps one interface per device index"),
    _around(Attachment, network_interfaces.attachment_init, "network card index is always 0", "__init__"),
    _replaced(moto.ec2.utils, filters.instance_value_in_filter_values, "knows no wildcards"),
    _replaced(EC2Response, console_output.get_console_output, "the same text for every instance"),
    _around(LaunchTemplate, launch_templates.create_version, "user data of a new version unusable"),
    _around(NatGatewayBackend, nat_gateways.create_nat_gateway, "a refused one leaves a part"),
    _around(NatGatewayBackend, nat_gateways.delete_nat_gateway, "its interface and tags stay"),
    _around(VPCBackend, deletions.delete_vpc, "its default network ACL stays"),
    _around(VPCBackend, deletions.delete_vpc_endpoints, "the endpoint and its tags stay"),
    _around(TagBackend, tags.describe_tags, "ignores the filter tag:KEY"),
    _around(AutoScalingBackend, auto_scaling.create_auto_scaling_group, "a refused group stays, with its instances"),
    _replaced(
        FakeAutoScalingGroup,
        auto_scaling.launch_instances,
        "launches the default template version into one subnet; a refused launch fails the call",
        "replace_autoscaling_group_instances",
    ),
    _around(FakeAutoScalingGroup, auto_scaling.set_desired_capacity, "ends the oldest instances always"),
    _around(
        InstanceState,
        auto_scaling.instance_launch_template,
        "shows the default version, not the one launched",
        "launch_template",
    ),
    _replaced(AutoScalingResponse, auto_scaling.describe_scaling_activities, "always empty"),
    _around(AutoScalingResponse, auto_scaling.put_scaling_policy, "answers without the ARN"),
    _replaced(AutoScalingBackend, auto_scaling_health.set_instance_health, "an unhealthy instance stays for ever"),
    _around(AutoScalingBackend, auto_scaling_health.resume_processes, "unhealthy instances are not replaced then"),
    _replaced(
        FakeBucket,
        lambda *_args, **_given: True,
        "refuses a target before it has the policy that lets S3 write",
        "_log_permissions_enabled_policy",
    ),
    _replaced(
        S3Backend, lambda *_args: None, "writes at once, so that no target can be deleted", "log_incoming_request"
    ),
    _around(Rule, event_bridge.send_to_targets, "calls no functions"),
    _replaced(
        moto.s3.notifications,
        event_bridge.send_object_event,
        "not what S3 says, and the caller waits for all that follows",
        "_send_event_bridge_message",
    ),
    _replaced(ServiceQuotasResponse, service_quotas.get_service_quota, "no EC2 quotas"),
    _replaced(ServiceQuotasResponse, service_quotas.list_aws_default_service_quotas, "no EC2 quotas"),
    _around(CloudWatchResponse, vcpu_use.get_metric_statistics, "nothing in AWS/Usage"),
    _replaced(LambdaFunction, lambda_process.invoke, "needs Docker; an Event invocation blocks the caller"),
    _replaced(LambdaFunction, lambda_process.invoke_lambda, "needs Docker", "_invoke_lambda"),
    _around(LambdaFunction, lambda_logging.init, "drops LoggingConfig", "__init__"),
    _around(LambdaFunction, lambda_logging.get_configuration, "drops LoggingConfig"),
    _around(LambdaFunction, lambda_logging.update_configuration, "drops LoggingConfig"),
    _replaced(moto.iam.models, access.random_secret, "secret keys can be foretold", "random_alphanumeric"),
    _around(IAMBackend, policies.create_policy, "no telling managed policies from inline ones"),
    _around(BaseIAMPolicyValidator, policies.validate_version, "refuses inline policies of 2008", "_validate_version"),
    _around(
        IAMPolicyDocumentValidator, policies.validate_condition_syntax, "refuses numbers", "_validate_condition_syntax"
    ),
    _around(AmiBackend, public_images.load_amis, "no Neuron images, others of 2017", "_load_amis"),
    _around(ParameterDict, public_images.check_loading_status, "lacks those of most images", "_check_loading_status"),
    _around(FSxBackend, file_systems.create_file_system, "in no subnet, refuses nothing"),
    _around(FSxBackend, file_systems.describe_file_systems, "an unknown id is no error"),
    _around(FSxBackend, file_systems.delete_file_system, "its tags stay"),
    _around(FileSystem, file_systems.to_dict, "no state, network, version or mount name"),
    _replaced(FakeEndpointConfig, sagemaker.validate_instance_type, "list ends in 2021"),
    _replaced(FakeSagemakerNotebookInstance, sagemaker.validate_instance_type, "list ends in 2021"),
    _around(SageMakerModelBackend, sagemaker.create_cluster, "takes options to be required"),
)


def install(*, endpoint: str) -> None:
    """Replace everything in the table; Lambda functions call back to `endpoint`."""
    for replaced in REPLACED:
        setattr(replaced.owner, replaced.name, replaced.by)
    lambda_process.use_endpoint(endpoint)
