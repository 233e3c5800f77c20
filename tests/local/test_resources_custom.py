"""Custom resources: functions that run as local processes, and functions of the CDK that are replaced."""

import json
import threading
import time
from typing import Any

import pytest

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, function, template

ANSWER = """
import json, os, time, urllib.request

def answer(event, status="SUCCESS", **more):
    body = {"Status": status, "StackId": event["StackId"], "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"], "PhysicalResourceId": "mine", **more}
    request = urllib.request.Request(event["ResponseURL"], json.dumps(body).encode(), method="PUT")
    urllib.request.urlopen(request).read()

def remember(event):
    import boto3
    ssm = boto3.client("ssm")
    name = "/events/" + event["ResourceProperties"]["Log"]
    try:
        before = ssm.get_parameter(Name=name)["Parameter"]["Value"] + " "
    except ssm.exceptions.ParameterNotFound:
        before = ""
    word = event["RequestType"] + ":" + event.get("PhysicalResourceId", "")
    ssm.put_parameter(Name=name, Value=before + word, Type="String", Overwrite=True)

def handler(event, context):
    properties = event["ResourceProperties"]
"""


@pytest.fixture
def stacks(embedded_aws: EmbeddedAws) -> Stacks:
    return Stacks(embedded_aws)


def custom(body: str, **properties: Any) -> dict[str, Any]:
    code = ANSWER + "".join(f"    {line}\n" for line in body.splitlines())
    wanted = {"ServiceToken": {"Fn::GetAtt": ["Fn", "Arn"]}, **properties}
    resources = function(code) | {"C": {"Type": "Custom::Thing", "Properties": wanted}}
    return template(resources, Outputs={"O": {"Value": {"Fn::GetAtt": ["C", "Given"]}}})


def events(stacks: Stacks, log: str) -> list[str]:
    return stacks.aws.client("ssm").get_parameter(Name=f"/events/{log}")["Parameter"]["Value"].split(" ")


def test_custom_resource_receives_create_update_and_delete(stacks: Stacks) -> None:
    body = 'remember(event)\nanswer(event, Data={"Given": properties["N"]})'
    name = stacks.deploy(custom(body, Log="life", N=1))
    assert stacks.outputs(name) == {"O": "1"}
    assert stacks.update(name, custom(body, Log="life", N=2)) == "UPDATE_COMPLETE"
    assert stacks.outputs(name) == {"O": "2"}
    stacks.delete(name)
    assert events(stacks, "life") == ["Create:", "Update:mine", "Delete:mine"]


def test_scalars_arrive_as_text(stacks: Stacks) -> None:
    body = 'answer(event, Data={"Given": json.dumps(properties["Deep"])})'
    name = stacks.deploy(custom(body, Deep={"count": 3, "yes": True, "list": [1.5]}))
    assert stacks.outputs(name) == {"O": '{"count": "3", "yes": "true", "list": ["1.5"]}'}


def test_changed_physical_id_deletes_the_old_resource(stacks: Stacks) -> None:
    body = 'remember(event)\nanswer(event, PhysicalResourceId="id-" + properties["N"], Data={"Given": "g"})'
    name = stacks.deploy(custom(body, Log="moved", N=1))
    stacks.update(name, custom(body, Log="moved", N=2))
    assert events(stacks, "moved") == ["Create:", "Update:id-1", "Delete:id-1"]


def test_failed_creation_shows_reason_and_is_deleted(stacks: Stacks) -> None:
    body = """remember(event)
answer(event, "FAILED" if event["RequestType"] == "Create" else "SUCCESS", Reason="15 of 16 devices")"""
    name = stacks.create(custom(body, Log="failed"))
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert "Message returned: 15 of 16 devices" in stacks.failures(name)
    assert events(stacks, "failed") == ["Create:", "Delete:mine"]


def test_failed_update_is_reverted_with_old_properties(stacks: Stacks) -> None:
    body = """remember(event)
status = "FAILED" if properties["N"] == "2" else "SUCCESS"
answer(event, status, Data={"Given": properties["N"]})"""
    name = stacks.deploy(custom(body, Log="back", N=1))
    assert stacks.update(name, custom(body, Log="back", N=2)) == "UPDATE_ROLLBACK_COMPLETE"
    assert events(stacks, "back") == ["Create:", "Update:mine", "Update:mine"]
    assert stacks.outputs(name) == {"O": "1"}


def test_crash_fails_long_before_the_timeout_with_error_and_log(stacks: Stacks) -> None:
    body = (
        'if event["RequestType"] == "Delete": return answer(event)\nprint("just before")\nraise ValueError("no luck")'
    )
    started = time.monotonic()
    name = stacks.create(custom(body))
    stacks.settled(name)
    assert time.monotonic() - started < 600  # The timeout is an hour.
    assert "no luck" in stacks.failures(name)
    assert "just before" in stacks.failures(name)


def test_response_may_arrive_after_the_function_returned(stacks: Stacks) -> None:
    body = """
import boto3
if event["RequestType"] == "Delete": return answer(event)
if "later" not in event:
    payload = json.dumps({**event, "later": True}).encode()
    boto3.client("lambda").invoke(FunctionName=context.function_name, InvocationType="Event", Payload=payload)
else:
    time.sleep(2)
    answer(event, Data={"Given": "late"})
""".strip()
    name = stacks.deploy(custom(body))
    assert stacks.outputs(name) == {"O": "late"}


def test_missing_response_fails_after_service_timeout(stacks: Stacks) -> None:
    name = stacks.create(custom('if event["RequestType"] == "Delete": answer(event)', ServiceTimeout=1))
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert "did not receive a response from your Custom Resource within 1 seconds" in stacks.failures(name)


def test_missing_response_attribute_fails(stacks: Stacks) -> None:
    name = stacks.create(custom("answer(event)"))
    assert stacks.settled(name) == "ROLLBACK_COMPLETE"
    assert "doesn't contain Given attribute" in stacks.reasons(name)


def test_waiting_resource_delays_no_request_and_stack_deletion_ends_it(stacks: Stacks) -> None:
    name = f"waiting-{time.monotonic_ns()}"
    wanted = custom('if event["RequestType"] == "Delete": answer(event)')
    client = stacks.api
    change_set = stacks.change_set(name, wanted, ChangeSetType="CREATE", Capabilities=["CAPABILITY_IAM"])

    waiting = threading.Thread(target=lambda: client.execute_change_set(ChangeSetName=change_set["ChangeSetId"]))
    waiting.start()
    while ("C", "CREATE_IN_PROGRESS") not in stacks.events(name):
        time.sleep(0.05)
    other = stacks.deploy(template({"A": {"Type": "AWS::SNS::Topic"}}))
    assert stacks.describe(name)["StackStatus"] == "CREATE_IN_PROGRESS"
    assert stacks.delete(name) == "DELETE_COMPLETE"
    stacks.delete(other)
    waiting.join()


MISSING_FUNCTION = "arn:aws:lambda:us-west-2:123456789012:function:none"


def test_cdk_function_that_empties_buckets_is_replaced(stacks: Stacks) -> None:
    bucket = {"Type": "AWS::S3::Bucket"}
    properties = {"ServiceToken": MISSING_FUNCTION, "BucketName": {"Ref": "B"}}
    empties = {"Type": "Custom::S3AutoDeleteObjects", "Properties": properties}
    name = stacks.deploy(template({"B": bucket, "E": empties}))
    stacks.aws.client("s3").put_object(Bucket=stacks.physical_id(name, "B"), Key="k", Body=b"")
    assert stacks.delete(name) == "DELETE_COMPLETE"


def test_cdk_sdk_call_is_made(stacks: Stacks) -> None:
    def call(action: str, **parameters: Any) -> str:
        path = {"responsePath": "Parameters.0.Name"} if action == "getParameters" else {"id": "mine"}
        return json.dumps({"service": "SSM", "action": action, "parameters": parameters, "physicalResourceId": path})

    properties = {
        "ServiceToken": MISSING_FUNCTION,
        "InstallLatestAwsSdk": False,
        "Create": call("putParameter", Name="/sdk/call", Value="v", Type="String", Overwrite="TRUE:BOOLEAN"),
        "Update": call("getParameters", Names=["/sdk/call"]),
        "Delete": call("deleteParameter", Name="PHYSICAL:RESOURCEID:"),
    }
    wanted = {"C": {"Type": "Custom::AnyName", "Properties": properties}}
    name = stacks.deploy(template(wanted))
    assert stacks.physical_id(name, "C") == "mine"
    properties["Changed"] = "x"
    outputs = {"O": {"Value": {"Fn::GetAtt": ["C", "Parameters.0.Value"]}}}
    assert stacks.update(name, template(wanted, Outputs=outputs)) == "UPDATE_COMPLETE", stacks.failures(name)
    assert (stacks.physical_id(name, "C"), stacks.outputs(name)) == ("/sdk/call", {"O": "v"})
    assert "without invoking the resource's function" in stacks.reasons(name)


@pytest.mark.parametrize(
    ("ignored", "status"), [("ParameterNotFound", "CREATE_COMPLETE"), ("Other", "ROLLBACK_COMPLETE")]
)
def test_cdk_sdk_call_may_ignore_errors(stacks: Stacks, ignored: str, status: str) -> None:
    call = {
        "service": "@aws-sdk/client-ssm",
        "action": "GetParameterCommand",
        "parameters": {"Name": "/missing"},
        "physicalResourceId": {"id": "x"},
        "ignoreErrorCodesMatching": ignored,
    }
    properties = {"ServiceToken": MISSING_FUNCTION, "InstallLatestAwsSdk": "true", "Create": json.dumps(call)}
    name = stacks.create(template({"C": {"Type": "Custom::AWS", "Properties": properties}}))
    assert stacks.settled(name) == status


BLOCKED = """
import boto3
blocked = event["RequestType"] == "Delete" and boto3.client("ssm").describe_parameters(
    ParameterFilters=[{"Key": "Name", "Values": ["/blocked/" + properties["Log"]]}]
)["Parameters"]
answer(event, "FAILED" if blocked else "SUCCESS", Reason="blocked", Data={"Given": "g"})
""".strip()
"""The code of a resource whose deletion fails while the parameter /blocked/LOG exists."""


def block(stacks: Stacks, log: str) -> None:
    stacks.aws.client("ssm").put_parameter(Name=f"/blocked/{log}", Value="x", Type="String")


def unblock(stacks: Stacks, log: str) -> None:
    stacks.aws.client("ssm").delete_parameter(Name=f"/blocked/{log}")


def test_failed_deletion_keeps_dependencies_until_it_succeeds(stacks: Stacks) -> None:
    name = stacks.deploy(custom(BLOCKED, Log="destroyed"))
    block(stacks, "destroyed")
    assert stacks.delete(name) == "DELETE_FAILED"
    touched = {one for one, status in stacks.events(name) if status.startswith("DELETE")}
    assert touched == {name, "C"}
    assert stacks.describe(name)["StackStatusReason"].endswith("failed to delete: [C].")
    unblock(stacks, "destroyed")
    assert stacks.delete(name) == "DELETE_COMPLETE"


def test_failed_deletion_in_rollback_keeps_dependencies(stacks: Stacks) -> None:
    block(stacks, "rolled-back")
    wanted = custom(BLOCKED, Log="rolled-back")
    wanted["Resources"]["Late"] = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "None", "Value": "x"}}
    wanted["Resources"]["Late"]["DependsOn"] = "C"
    name = stacks.create(wanted)
    assert stacks.settled(name) == "ROLLBACK_FAILED"
    unblock(stacks, "rolled-back")
    assert stacks.delete(name) == "DELETE_COMPLETE"
