"""Saving the state of an embedded AWS, and loading it into another start."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.local.conftest import EmbeddedAws
from tests.local.stacks import Stacks, Template, function, parameter, template
from trainium_cli import local_state
from trainium_local import clock
from trainium_local.cloudformation.stack import KEEP_DELETED, MOST_DELETED, Region
from trainium_local.lifecycle import LocalError
from trainium_local.server import Settings

# What a start of the server makes anew, or what is put in when it starts.
NOT_STATE = {
    "trainium_local.access._of_roles": "asked for again when nobody has them",
    "trainium_local.access._owner": "credentials of this start",
    "trainium_local.cloudformation.signals._listeners": "registered at the start",
    "trainium_local.permissions.enforcement._enforced": "a setting of the start",
    "trainium_local.resources.api._connection": "of this start",
    "trainium_local.resources.custom_resource._handlers": "registered at the start",
    "trainium_local.resources.registry._fallback": "registered at the start",
    "trainium_local.resources.registry._types": "registered at the start",
    "trainium_local.services.auto_scaling._listeners": "registered at the start",
    "trainium_local.services.event_bridge._listeners": "registered at the start",
    "trainium_local.services.launch_checks._checks": "registered at the start",
    "trainium_local.services.lambda_process._code": "unpacked again when it is needed",
    "trainium_local.services.lambda_process._endpoint": "of this start",
    "trainium_local.services.lambda_starter._zygote": "a process of this start",
    "trainium_local_plugin.clock_control._before_schedules": "registered at the start",
    "trainium_local.kept._containers": "what is saved",
}
SCRIPTS = ("lambda_bootstrap", "lambda_zygote", "__main__")

# Every container that a module, or an object that it makes when it is imported, can change later: constants are in
# capitals. In a process of its own, since importing all of it imports all of moto.
FIND = f"""
import collections, dataclasses, importlib, json, pkgutil
import trainium_local
import trainium_local_plugin
from trainium_local.kept import contents

def is_changing(value):
    return type(value) in (dict, list, set, collections.deque, collections.defaultdict)

def containers(module):
    for name, value in vars(module).items():
        if name.startswith("__"):
            continue
        own = type(value).__module__.startswith("trainium_local")
        if is_changing(value) and not name.isupper():
            yield name, value
        elif own and not (dataclasses.is_dataclass(value) and value.__dataclass_params__.frozen):
            for inner, one in getattr(value, "__dict__", {{}}).items():
                if is_changing(one):
                    yield f"{{name}}.{{inner}}", one

found = set()
walked = [(package.__path__, package.__name__ + ".") for package in (trainium_local, trainium_local_plugin)]
for one in [one for place in walked for one in pkgutil.walk_packages(*place)]:
    if one.name.rpartition(".")[2] not in {SCRIPTS!r}:
        importlib.import_module(one.name)
import sys
kept = {{id(one) for one in contents().values()}}
for module in [one for name, one in sys.modules.items() if name.startswith("trainium_local")]:
    found |= {{f"{{module.__name__}}.{{name}}" for name, value in containers(module) if id(value) not in kept}}
print(json.dumps(sorted(found)))
"""


def test_whatever_a_module_remembers_is_saved() -> None:
    printed = subprocess.run([sys.executable, "-c", FIND], capture_output=True, text=True, check=True).stdout
    assert set(json.loads(printed)) == NOT_STATE.keys()


@pytest.fixture(scope="module")
def pair(start_embedded_aws: Callable[[Settings], EmbeddedAws]) -> tuple[EmbeddedAws, EmbeddedAws]:
    return start_embedded_aws(Settings()), start_embedded_aws(Settings())


ECHO = """
    import json, urllib.request
    def handler(event, context):
        answer = {"Status": "SUCCESS", "PhysicalResourceId": "echo", "Data": {"Said": "x"}}
        answer |= {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
        body = json.dumps(answer).encode()
        urllib.request.urlopen(urllib.request.Request(event["ResponseURL"], data=body, method="PUT"))
"""


def one_of_each() -> Template:
    """Something of moto's, of the store, of a function's, and a URL of the embedded AWS itself."""
    return template(
        {
            **function(ECHO),
            "Custom": {"Type": "Custom::Echo", "Properties": {"ServiceToken": {"Fn::GetAtt": ["Fn", "Arn"]}}},
            "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
            "Placement": {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}},
            "Bucket": {"Type": "AWS::S3::Bucket"},
            "Key": {"Type": "AWS::KMS::Key"},
            "Stored": {"Type": "AWS::CodeStarConnections::Connection", "Properties": {"ConnectionName": "c"}},
            "Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"},
            "Parameter": parameter("1"),
        },
        Outputs={"Url": {"Value": {"Ref": "Handle"}}, "Said": {"Value": {"Fn::GetAtt": ["Custom", "Said"]}}},
    )


def describe_all(aws: EmbeddedAws, stack: str, bucket: str) -> dict[str, Any]:
    """What the services answer, but for what belongs to the answer itself."""
    cloudformation = aws.client("cloudformation")
    answers = {
        "stacks": cloudformation.describe_stacks(),
        "events": cloudformation.describe_stack_events(StackName=stack),
        "resources": cloudformation.describe_stack_resources(StackName=stack),
        "change sets": cloudformation.list_change_sets(StackName=stack),
        "networks": aws.client("ec2").describe_vpcs(),
        "placement": aws.client("ec2").describe_placement_groups(),
        "functions": aws.client("lambda").list_functions(),
        "keys": aws.client("kms").list_keys(),
        "parameters": aws.client("ssm").describe_parameters(),
        "roles": aws.client("iam").list_roles(),
        "log groups": aws.client("logs").describe_log_groups(),
        "objects": aws.client("s3").list_objects_v2(Bucket=bucket),
    }
    for answer in answers.values():
        del answer["ResponseMetadata"]
    return answers


def test_a_loaded_state_is_what_was_saved_and_goes_on(pair: tuple[EmbeddedAws, EmbeddedAws], tmp_path: Path) -> None:
    old, new = pair
    stacks = Stacks(old)
    stack = stacks.deploy(one_of_each(), Capabilities=["CAPABILITY_IAM"])
    bucket, file = stacks.physical_id(stack, "Bucket"), tmp_path / "state"
    old.client("s3").put_object(Bucket=bucket, Key="k", Body=b"content")
    changed = one_of_each()
    changed["Resources"]["Parameter"] = parameter("2")
    stacks.change_set(stack, changed, Capabilities=["CAPABILITY_IAM"])
    local_state.save(file, tmp_path, old.connection)
    before = describe_all(old, stack, bucket)

    left = Stacks(new).deploy(template({"P": parameter()}))
    local_state.read(file, tmp_path).load(new.connection)
    assert json.dumps(describe_all(new, stack, bucket), default=str) == json.dumps(before, default=str).replace(
        old.endpoint, new.endpoint
    )
    assert new.client("s3").get_object(Bucket=bucket, Key="k")["Body"].read() == b"content"
    stacks = Stacks(new)
    assert left not in json.dumps(stacks.api.describe_stacks(), default=str)
    assert stacks.outputs(stack)["Url"].startswith(new.endpoint)

    new.client("cloudformation").execute_change_set(StackName=stack, ChangeSetName="look")
    assert stacks.settled(stack) == "UPDATE_COMPLETE"
    assert stacks.value_of(stack, "Parameter") == "2"
    new.client("s3").delete_object(Bucket=bucket, Key="k")
    assert stacks.delete(stack) == "DELETE_COMPLETE"
    assert [vpc for vpc in new.client("ec2").describe_vpcs()["Vpcs"] if not vpc["IsDefault"]] == []
    assert new.client("lambda").list_functions()["Functions"] == []
    assert stacks.settled(Stacks(old).describe(stack)["StackId"]) == "DELETE_COMPLETE"


def test_nothing_is_saved_while_a_stack_is_in_progress(pair: tuple[EmbeddedAws, EmbeddedAws], tmp_path: Path) -> None:
    stacks = Stacks(pair[0])
    waiting = {
        "Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"},
        "Wait": {
            "Type": "AWS::CloudFormation::WaitCondition",
            "Properties": {"Handle": {"Ref": "Handle"}, "Timeout": "600"},
        },
    }
    name = stacks.create(template(waiting))
    try:
        with pytest.raises(LocalError, match=f"stack {name} is CREATE_IN_PROGRESS"):
            local_state.save(tmp_path / "state", tmp_path, pair[0].connection)
        assert not (tmp_path / "state").exists()
    finally:
        stacks.delete(name)


class _FakeConnection:
    """Stands for the connection to a server that has one state to give."""

    endpoint = "http://127.0.0.1:1"

    def send(self, *_: Any, **__: Any) -> bytes:
        return b"http://127.0.0.1:7\nstate"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    local_state.save(tmp_path / "file", tmp_path, _FakeConnection())  # type: ignore[arg-type]
    return tmp_path / "file"


def test_a_saved_file_is_the_owner_s_alone_and_is_read_again(saved: Path) -> None:
    assert saved.stat().st_mode & 0o777 == 0o600
    assert (saved.parent / local_state.KEY).stat().st_mode & 0o777 == 0o600
    assert local_state.read(saved, saved.parent).port == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-1], "is torn: of 24 bytes it has 23"),
        (lambda text: text[:10], "is no state"),
        (lambda text: text.replace(b"trn", b"TRN"), "is no state"),
        (lambda text: text.replace(b"state", b"stat3").replace(b"stat3", b"state", 1), "was changed, or saved by"),
        (lambda text: text.replace(b'"moto": "5', b'"moto": "4'), r"was saved with moto 4\S+ \(here 5\S+\)"),
    ],
)
def test_a_file_that_is_not_the_one_that_was_saved_is_refused(
    saved: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    saved.write_bytes(change(saved.read_bytes()))
    with pytest.raises(LocalError, match=message):
        local_state.read(saved, saved.parent)


def test_a_state_that_somebody_else_saved_is_refused(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(LocalError, match="saved by somebody else"):
        local_state.read(saved, tmp_path / "other")


def test_a_state_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="cannot be read"):
        local_state.read(tmp_path / "none", tmp_path)


def test_of_deleted_stacks_the_last_are_kept_as_long_as_aws_keeps_them() -> None:
    region = Region("123456789012", "us-west-2")
    old, *others = (region.new_stack(f"s{number}") for number in range(3 + MOST_DELETED))
    alive = region.new_stack("alive")
    old.deleted = clock.now() - KEEP_DELETED
    others[0].deleted = clock.now()
    assert region.find(old.stack_id) is old
    region.new_stack("one more")
    assert region.find(old.stack_id) is None
    for stack in others:
        stack.deleted = clock.now()
    region.new_stack("and another")
    kept = [stack for stack in region.stacks if stack.deleted is not None]
    assert kept == others[-len(kept) :]
    assert len(kept) == MOST_DELETED - 1
    assert region.find("alive") is alive
