"""What becomes of an instance that is marked unhealthy: its group replaces it, unless that is suspended."""

import threading
from typing import Any

from moto.autoscaling.exceptions import ValidationError

_SOON_S = 0.3  # long enough to be seen as unhealthy, as on AWS, where it takes a minute or two


def set_instance_health(backend: Any, instance_id: str, health_status: str) -> None:
    state, group = _find(backend, instance_id)
    if state is None:
        raise ValidationError(f"Instance Id not found - No managed instance found for instance ID: {instance_id}")
    state.health_status = health_status
    _replace_soon(backend, group)


def resume_processes(original: Any, backend: Any, group_name: str, scaling_processes: list[str]) -> None:
    """Instances that were marked while replacing was suspended are replaced once it is resumed."""
    original(backend, group_name, scaling_processes)
    _replace_soon(backend, backend.autoscaling_groups[group_name])


def _find(backend: Any, instance_id: str) -> tuple[Any, Any]:
    for group in backend.autoscaling_groups.values():
        for state in group.instance_states:
            if state.instance.id == instance_id:
                return state, group
    return None, None


def _replace_soon(backend: Any, group: Any) -> None:
    timer = threading.Timer(_SOON_S, _replace, args=(backend, group.name))
    timer.daemon = True
    timer.start()


def _replace(backend: Any, group_name: str) -> None:
    group = backend.autoscaling_groups.get(group_name)
    if group is None or "ReplaceUnhealthy" in {process["ProcessName"] for process in group.suspended_processes}:
        return
    for state in list(group.instance_states):
        # Asked anew for each: somebody else may have ended it since.
        if state.health_status == "Unhealthy" and _find(backend, state.instance.id)[0] is state:
            # First the one, then the other, as Auto Scaling does: a quota may have no room for both.
            backend.ec2_backend.terminate_instances([state.instance.id])
            backend.notify_terminate_instances([state.instance.id])
