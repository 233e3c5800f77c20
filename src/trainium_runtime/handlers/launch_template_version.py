"""Custom::TrnLaunchTemplateVersion: selects the launch template version of the nodes."""

from collections.abc import Mapping
from typing import Any

from trainium_runtime.launch_template_version import choose
from trainium_runtime.log import log

from .custom_resource import Result, explained
from .rollback import is_rolling_back


def provide(event: Mapping[str, Any]) -> Result:
    offered = event["ResourceProperties"]
    with explained("no version of the launch template could be selected"):
        # If the state of the stack is unknown, a rollback is assumed: nodes of an earlier version may be running.
        rolling_back = event["RequestType"] == "Update" and is_rolling_back(event["StackId"], unknown=True)
        chosen, physical_id = choose(offered, event.get("PhysicalResourceId"), rolling_back=rolling_back)
    latest = offered["LatestVersion"]
    newest = "the newest" if chosen.version == latest else f"kept; the newest is {latest}"
    summary = f"version {chosen.version} of {offered['LaunchTemplateId']} ({newest})"
    log(summary)
    data = {"Version": chosen.version, "NodeScript": chosen.script, "Summary": summary}
    return Result(physical_id=physical_id, data=data)
