"""Custom::TrnLaunchTemplateVersion: keeps the nodes on the version of their launch template that they were made of."""

from typing import Any

from trainium_runtime.launch_template_version import choose

from .custom_resource import respond


def handle(event: dict[str, Any], context: object) -> None:  # noqa: ARG001
    if event["RequestType"] == "Delete":
        respond(event, physical_id=event["PhysicalResourceId"])
        return
    offered = event["ResourceProperties"]
    try:
        chosen, physical_id = choose(offered, event.get("PhysicalResourceId"))
    except Exception as error:  # CloudFormation needs a response, whatever it is
        failed = event.get("PhysicalResourceId", "none")
        respond(event, failure=f"no version of the launch template could be chosen: {error!r}", physical_id=failed)
        return
    latest = offered["LatestVersion"]
    newest = "the newest" if chosen.version == latest else f"kept; the newest is {latest}"
    summary = f"version {chosen.version} of {offered['LaunchTemplateId']} ({newest})"
    print(summary)
    data = {"Version": chosen.version, "NodeScript": chosen.script, "Summary": summary}
    respond(event, physical_id=physical_id, data=data)
