"""Custom::TrnLaunchTemplateVersion: chooses the launch template version of the nodes."""

from typing import Any

from trainium_runtime.launch_template_version import choose

from .custom_resource import respond
from .log import log
from .rollback import is_rolling_back


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    if event["RequestType"] == "Delete":
        respond(event, physical_id=event["PhysicalResourceId"])
        return
    offered = event["ResourceProperties"]
    try:
        # If the state of the stack is unknown, a rollback is assumed: nodes of an earlier version may be running.
        rolling_back = event["RequestType"] == "Update" and is_rolling_back(event["StackId"], unknown=True)
        chosen, physical_id = choose(offered, event.get("PhysicalResourceId"), rolling_back=rolling_back)
    except Exception as error:  # CloudFormation needs a response
        failed = event.get("PhysicalResourceId", "none")
        respond(event, failure=f"no version of the launch template could be chosen: {error!r}", physical_id=failed)
        return
    latest = offered["LatestVersion"]
    newest = "the newest" if chosen.version == latest else f"kept; the newest is {latest}"
    summary = f"version {chosen.version} of {offered['LaunchTemplateId']} ({newest})"
    log(summary)
    data = {"Version": chosen.version, "NodeScript": chosen.script, "Summary": summary}
    respond(event, physical_id=physical_id, data=data)
