"""Deploys the stack of a cloud assembly as the CDK CLI does, without the seconds that each start of the CLI takes.

The demo, `trn deploy` and `Account.cdk_deploy` run the CLI itself.
"""

import io
import json
import time
import zipfile
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from tests.local.conftest import EmbeddedAws
from trainium_local.environment import ACCOUNT_ID

CAPABILITIES = ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
SETTLED_SECONDS = 120


def deploy(aws: EmbeddedAws, assembly: Path, stack: str) -> str:
    """Create or update a stack, by its ID in the app.

    Returns:
        The final status, followed by the reasons of failed resources, one per line.
    """
    properties = json.loads((assembly / "manifest.json").read_text())["artifacts"][stack]["properties"]
    publish_assets(aws, assembly, stack)
    stack = properties.get("stackName", stack)
    bucket, _, key = _filled_in(aws, properties["stackTemplateAssetObjectUrl"]).removeprefix("s3://").partition("/")
    arguments = {
        "TemplateURL": f"https://s3.{aws.region}.amazonaws.com/{bucket}/{key}",
        "RoleARN": _filled_in(aws, properties["cloudFormationExecutionRoleArn"]),
        "Tags": [{"Key": key, "Value": value} for key, value in properties.get("tags", {}).items()],
    }
    found = {found["StackName"]: found for found in aws.client("cloudformation").describe_stacks()["Stacks"]}
    if stack not in found:
        return create(aws, stack, **arguments)
    template = json.loads((assembly / properties["templateFile"]).read_text())
    current = {parameter["ParameterKey"] for parameter in found[stack].get("Parameters", [])}
    names = current & template.get("Parameters", {}).keys()
    kept = [{"ParameterKey": name, "UsePreviousValue": True} for name in names]
    try:
        aws.client("cloudformation").update_stack(
            StackName=stack, Capabilities=CAPABILITIES, Parameters=kept, **arguments
        )
    except ClientError as error:
        if "No updates are to be performed" not in str(error):
            raise
        return found[stack]["StackStatus"]
    return _outcome(aws, stack)


def create(aws: EmbeddedAws, stack: str, **arguments: Any) -> str:
    """Create a stack with these arguments of CreateStack. Returns the same as `deploy`."""
    aws.client("cloudformation").create_stack(StackName=stack, Capabilities=CAPABILITIES, **arguments)
    return _outcome(aws, stack)


def destroy(aws: EmbeddedAws, stack: str) -> str:
    """Delete a stack. Returns its final status, followed by the reasons of failed resources."""
    api = aws.client("cloudformation")
    stack_id = api.describe_stacks(StackName=stack)["Stacks"][0]["StackId"]
    api.delete_stack(StackName=stack)
    return _outcome(aws, stack_id)


def publish_assets(aws: EmbeddedAws, assembly: Path, stack: str) -> None:
    """Upload the assets of a stack that are missing in the bootstrap bucket."""
    s3 = aws.client("s3")
    for asset in json.loads((assembly / f"{stack}.assets.json").read_text())["files"].values():
        source = assembly / asset["source"]["path"]
        for destination in asset["destinations"].values():
            place = {
                "Bucket": _filled_in(aws, destination["bucketName"]),
                "Key": _filled_in(aws, destination["objectKey"]),
            }
            try:
                s3.head_object(**place)
            except ClientError:
                packed = asset["source"]["packaging"] == "zip"
                s3.put_object(**place, Body=_zipped(source) if packed else source.read_bytes())


def _zipped(folder: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            archive.write(file, file.relative_to(folder))
    return packed.getvalue()


def _filled_in(aws: EmbeddedAws, text: str) -> str:
    known = {"AccountId": ACCOUNT_ID, "Partition": "aws", "Region": aws.region}
    for name, value in known.items():
        text = text.replace(f"${{AWS::{name}}}", value)
    return text


def _outcome(aws: EmbeddedAws, stack: str) -> str:
    return "\n".join((_settled(aws, stack), *_failures(aws, stack)))


def _settled(aws: EmbeddedAws, stack: str) -> str:
    deadline = time.monotonic() + SETTLED_SECONDS
    while time.monotonic() < deadline:
        found: dict[str, Any] = aws.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
        if not found["StackStatus"].endswith("_IN_PROGRESS"):
            return found["StackStatus"]
        time.sleep(0.1)
    raise TimeoutError(f"{stack} is still {found['StackStatus']} after {SETTLED_SECONDS} s")


def _failures(aws: EmbeddedAws, stack: str) -> list[str]:
    """Failures of the last operation on a stack."""
    pages = aws.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack)
    events = [event for page in pages for event in page["StackEvents"]]
    begun = next(number for number, event in enumerate(events) if event.get("ResourceStatusReason") == "User Initiated")
    failed = [event for event in reversed(events[:begun]) if event["ResourceStatus"].endswith("FAILED")]
    return [f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason')}" for event in failed]
