"""Launches, terminations and replacements of the instances of an Auto Scaling group, and its scaling activities.

moto launches the *default* version of the launch template even if the group names another, uses one subnet, and fails
the call if a launch is refused. On AWS, the call succeeds and a failed scaling activity shows the refusal. Only
a launch template that can never launch an instance fails the call.
"""

import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import ASG_NAME_TAG, InstanceState
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult, EmptyResult

from trainium_local import clock
from trainium_local.services.errors import refusal
from trainium_local.services.launch_checks import launch_refusals
from trainium_local.services.launch_request import ON_DEMAND, launch_request
from trainium_local.services.placement_groups import existing

# Refusals that depend on the time or the zone. Any other refusal means that the launch template is invalid.
REFUSED_AT_LAUNCH = re.compile(
    r"Unsupported|VcpuLimitExceeded|MaxSpotInstanceCountExceeded|ReservationCapacityExceeded|Insufficient.*"
)

_REPLACEMENT_DELAY_S = 0.3  # long enough to see the instance as unhealthy; AWS takes a minute or two

_listeners: list[Callable[[Any], None]] = []


def when_launched(listener: Callable[[Any], None]) -> None:
    """Call `listener` with every instance that `report_launch` receives later."""
    _listeners.append(listener)


def report_launch(instance: Any) -> None:
    """Call the listeners with an instance that a group launched."""
    for listener in _listeners:
        listener(instance)


def create_auto_scaling_group(original: Any, backend: Any, name: str, *arguments: Any, **named: Any) -> Any:
    """Create the group or nothing: moto looks up load balancers and target groups only after all launches."""
    if name in backend.autoscaling_groups:
        raise refusal("group-exists", group=name)
    try:
        group = original(backend, name, *arguments, **named)
        _check_launch_template(group)
        return group
    except Exception:
        if name in backend.autoscaling_groups:
            backend.delete_auto_scaling_group(name)
        raise


def delete_auto_scaling_group(original: Any, backend: Any, name: str) -> None:
    """Terminate all instances, including those protected from scale-in, which moto keeps running."""
    group = backend.autoscaling_groups.get(name)
    for state in group.instance_states if group else ():
        state.protected_from_scale_in = False
    original(backend, name)


def _check_launch_template(group: Any) -> None:
    """Raise ValidationError for a launch template that cannot launch an instance, even if the group is empty."""
    template = group.ec2_launch_template
    if not template:
        return
    ec2, place = group.autoscaling_backend.ec2_backend, _places(group)[0]
    version = {"LaunchTemplateId": template.id, "Version": template.get_version(group.launch_template_version).number}
    overrides = ((group.mixed_instances_policy or {}).get("LaunchTemplate") or {}).get("Overrides") or [{}]
    for override in overrides:
        arguments = {
            "launch_template": version,
            "placement_group": group.placement_group,
            "instance_type": override.get("InstanceType"),
            "is_instance_type_default": not override.get("InstanceType"),
            **place,
        }
        try:
            request = launch_request(ec2, image_id=None, count=1, arguments=arguments)
            for refused in launch_refusals(ec2, request):
                if not REFUSED_AT_LAUNCH.fullmatch(refused.code):
                    raise refused
        except ServiceException as error:
            raise _not_launchable(error) from error
        if group.mixed_instances_policy and request.market != ON_DEMAND:
            raise ValidationError(
                "Incompatible launch template: a launch template that requests Spot Instances or Capacity Blocks "
                "(InstanceMarketOptions) cannot be used with a mixed instances policy"
            )
        _check_placement(group, request.placement_group)


def _check_placement(group: Any, name: str | None) -> None:
    """Raise ValidationError for several zones with a cluster placement group (Auto Scaling API reference)."""
    ec2 = group.autoscaling_backend.ec2_backend
    zones = {ec2.get_subnet(place["subnet_id"]).availability_zone for place in _places(group) if "subnet_id" in place}
    if name and len(zones) > 1 and existing(ec2, name)["Strategy"] == "cluster":
        raise ValidationError("You cannot specify multiple Availability Zones and a cluster placement group.")


def _not_launchable(error: ServiceException) -> ValidationError:
    return ValidationError(f"You must use a valid fully-formed launch template. {error.message}")


def launch_instances(group: Any, count_needed: int, propagated_tags: dict[str, str]) -> None:
    """Launch instances one at a time. Stop if every subnet or zone refuses a launch."""
    tags = {**propagated_tags, ASG_NAME_TAG: group.name}
    for _ in range(count_needed):
        instance = _launch_where_possible(group, tags)
        if instance is None:
            return
        report_launch(instance)


def set_desired_capacity(original: Any, group: Any, new_capacity: int | None) -> None:
    """Check the maximum size, terminate the newest instances first if the policy says so, and record terminations."""
    if new_capacity is not None and new_capacity > group.max_size:
        message = f"New SetDesiredCapacity value {new_capacity} is above max value {group.max_size}"
        raise ValidationError(f"{message} for the AutoScalingGroup.")
    before = list(group.instance_states)
    if group.termination_policies[:1] == ["NewestInstance"]:
        group.instance_states.reverse()
    try:
        original(group, new_capacity)
    finally:
        after = list(group.instance_states)
        remaining = [state for state in before if state in after]
        group.instance_states = [*remaining, *(state for state in after if state not in remaining)]
        for state in before:
            if state not in after:
                _record_termination(group, state.instance.id)


def instance_launch_template(original: Any, state: Any) -> dict[str, Any] | None:
    """Return the template version from which the instance was launched. moto returns the default version."""
    template = original(state)
    version = vars(state).get("launch_template_version")
    return template | {"Version": version} if template and version else template


def describe_scaling_activities(response: Any) -> ActionResult:
    name = response._get_param("AutoScalingGroupName")
    ids = response._get_param("ActivityIds", []) or []
    groups = response.autoscaling_backend.describe_auto_scaling_groups([name] if name else [])
    activities = [a for group in groups for a in _activities(group) if not ids or a["ActivityId"] in ids]
    return ActionResult({"Activities": sorted(activities, key=lambda a: a["StartTime"], reverse=True)})


def disable_metrics_collection(response: Any) -> ActionResult:
    """Auto Scaling DisableMetricsCollection, of all metrics."""
    response.autoscaling_backend.enable_metrics_collection(response._get_param("AutoScalingGroupName"), [])
    return EmptyResult()


def _launch_where_possible(group: Any, tags: dict[str, str]) -> Any | None:
    refused: ServiceException | None = None
    for place in _places(group):
        try:
            instance = _launch(group, place, tags)
        except ServiceException as error:
            if not REFUSED_AT_LAUNCH.fullmatch(error.code):
                raise _not_launchable(error) from error
            refused = error
            continue
        cause = "an instance was started in response to a difference between desired and actual capacity"
        _record(group, f"Launching a new EC2 instance: {instance.id}", cause, StatusCode="Successful")
        return instance
    if refused:
        reason = f"{refused.message} Launching EC2 instance failed."
        description = f"Launching a new EC2 instance.  Status Reason: {reason}"
        cause = "an instance was to be started in response to a difference between desired and actual capacity"
        _record(group, description, cause, StatusCode="Failed", StatusMessage=reason)
    return None


def _places(group: Any) -> list[dict[str, str]]:
    """Return the subnets (or zones) of the group, those with the fewest of its instances first."""
    if group.vpc_zone_identifier:
        used = Counter(state.instance.subnet_id for state in group.instance_states)
        subnets = group.vpc_zone_identifier.split(",")
        return [{"subnet_id": subnet} for subnet in sorted(subnets, key=lambda subnet: used[subnet])]
    used = Counter(state.instance.availability_zone for state in group.instance_states)
    return [{"placement": zone} for zone in sorted(group.availability_zones, key=lambda zone: used[zone])]


def _launch(group: Any, place: dict[str, str], tags: dict[str, str]) -> Any:
    template, version = group.ec2_launch_template, None
    if template:
        version = template.get_version(group.launch_template_version).number
    reservation = group.autoscaling_backend.ec2_backend.run_instances(
        group.image_id,
        1,
        group.user_data,
        group.security_groups,
        instance_type=group.instance_type,
        is_instance_type_default=False,
        tags={"instance": tags},
        launch_config=group.launch_config,
        launch_template={"LaunchTemplateId": template.id, "Version": version} if template else None,
        associate_public_ip=group.launch_config.associate_public_ip_address if group.launch_config else None,
        placement_group=group.placement_group,
        **place,
    )
    instance = reservation.instances[0]
    instance.autoscaling_group = group
    state = InstanceState(instance, protected_from_scale_in=group.new_instances_protected_from_scale_in)
    vars(state)["launch_template_version"] = str(version) if version else None
    group.instance_states.append(state)
    return instance


def _activities(group: Any) -> list[dict[str, Any]]:
    return vars(group).setdefault("scaling_activities", [])


def _record_termination(group: Any, instance_id: str) -> None:
    cause = f"instance {instance_id} was taken out of service"
    _record(group, f"Terminating EC2 instance: {instance_id}", cause, StatusCode="Successful")


def _record(group: Any, description: str, cause: str, **outcome: str) -> None:
    now = clock.now().replace(tzinfo=None) + timedelta(milliseconds=len(_activities(group)))
    sizes = f"with {len(group.instance_states)} running and {group.desired_capacity} desired"
    _activities(group).append(
        {
            "ActivityId": str(uuid.uuid4()),
            "AutoScalingGroupName": group.name,
            "AutoScalingGroupARN": group.arn,
            "Cause": f"At {now:%Y-%m-%dT%H:%M:%SZ} {cause}, {sizes}.",
            "Description": description,
            "StartTime": now,
            "EndTime": now,
            "Progress": 100,
            "Details": "{}",
            **outcome,
        }
    )


def set_instance_health(backend: Any, instance_id: str, health_status: str) -> None:
    """Set the health status. An unhealthy instance is replaced soon, unless replacement is suspended."""
    state, group = _find(backend, instance_id)
    if state is None:
        raise ValidationError(f"Instance Id not found - No managed instance found for instance ID: {instance_id}")
    state.health_status = health_status
    _replace_soon(backend, group)


def resume_processes(original: Any, backend: Any, group_name: str, scaling_processes: list[str]) -> None:
    """Replace the instances that were marked unhealthy while replacement was suspended."""
    original(backend, group_name, scaling_processes)
    _replace_soon(backend, backend.autoscaling_groups[group_name])


def _find(backend: Any, instance_id: str) -> tuple[Any, Any]:
    for group in backend.autoscaling_groups.values():
        for state in group.instance_states:
            if state.instance.id == instance_id:
                return state, group
    return None, None


def _replace_soon(backend: Any, group: Any) -> None:
    timer = threading.Timer(_REPLACEMENT_DELAY_S, _replace, args=(backend, group.name))
    timer.daemon = True
    timer.start()


def _replace(backend: Any, group_name: str) -> None:
    group = backend.autoscaling_groups.get(group_name)
    if group is None or "ReplaceUnhealthy" in {process["ProcessName"] for process in group.suspended_processes}:
        return
    for state in list(group.instance_states):
        # The state is looked up each time, because the instance may have been terminated since.
        if state.health_status == "Unhealthy" and _find(backend, state.instance.id)[0] is state:
            # Terminate before launching, as Auto Scaling does: a quota may not permit both instances.
            backend.ec2_backend.terminate_instances([state.instance.id])
            _record_termination(group, state.instance.id)
            backend.notify_terminate_instances([state.instance.id])
