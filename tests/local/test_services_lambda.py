"""A Lambda function runs as a local process: its result, errors and logs, and its isolation."""

import io
import json
import os
import signal
import tempfile
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.code_entry import readable
from tests.local.conftest import EmbeddedAws
from trainium_local import lifecycle
from trainium_local.server import Settings

ROLE = "arn:aws:iam::123456789012:role/lambda"

Create = Callable[..., str]


def zipped(body: str, **modules: str) -> bytes:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        for name, text in {"index": body, **modules}.items():
            archive.writestr(readable(f"{name}.py"), text)
    return code.getvalue()


@pytest.fixture
def create(embedded_aws: EmbeddedAws) -> Create:
    return creator(embedded_aws)


def creator(aws: EmbeddedAws) -> Create:
    """A function that creates Lambda functions from a handler's text and from `modules`: other texts by name."""
    client, iam = aws.client("lambda"), aws.client("iam")
    if not any(role["RoleName"] == "lambda" for role in iam.list_roles()["Roles"]):
        iam.create_role(RoleName="lambda", AssumeRolePolicyDocument="{}")

    def create(body: str, *, modules: Mapping[str, str] | None = None, code: bytes = b"", **more: Any) -> str:
        name = f"f-{uuid.uuid4().hex[:8]}"
        settings = {"Runtime": "python3.13", "Handler": "index.handler", "Timeout": 20} | more
        archive = code or zipped(body, **(modules or {}))
        client.create_function(FunctionName=name, Role=ROLE, Code={"ZipFile": archive}, **settings)
        return name

    return create


def invoke(aws: EmbeddedAws, name: str, event: Any = None, kind: str = "RequestResponse") -> tuple[Any, str | None]:
    answer = aws.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event or {}), InvocationType=kind)
    return json.loads(answer["Payload"].read() or "null"), answer.get("FunctionError")


def log_of(aws: EmbeddedAws, group: str) -> str:
    events = aws.client("logs").filter_log_events(logGroupName=group)["events"]
    return "\n".join(event["message"] for event in events)


def log_groups(aws: EmbeddedAws) -> list[str]:
    return [group["logGroupName"] for group in aws.client("logs").describe_log_groups()["logGroups"]]


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 480
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_result_and_log_of_handler_are_returned(embedded_aws: EmbeddedAws, create: Create) -> None:
    name = create("def handler(event, context):\n    print('noise')\n    return {'twice': event['n'] * 2}\n")
    assert f"/aws/lambda/{name}" not in log_groups(embedded_aws)
    assert invoke(embedded_aws, name, {"n": 21}) == ({"twice": 42}, None)
    assert "noise" in log_of(embedded_aws, f"/aws/lambda/{name}")


@pytest.mark.parametrize(
    ("body", "more", "kind", "message"),
    [
        ("raise ValueError('no such node')", {}, "ValueError", "no such node"),
        ("import nothing_of_that_name", {}, "ModuleNotFoundError", "nothing_of_that_name"),
        ("import os; os._exit(9)", {}, "Runtime.ExitError", "exit code 9"),
        ("import time; time.sleep(600)", {"Timeout": 1}, "Sandbox.Timedout", "Task timed out after 1.00 seconds"),
        ("pass", {"Runtime": "java21"}, "Runtime.NotSupported", "java21"),
    ],
)
def test_failed_invocation_is_a_function_error(
    embedded_aws: EmbeddedAws, create: Create, body: str, more: dict[str, Any], kind: str, message: str
) -> None:
    before = time.monotonic()
    payload, error = invoke(embedded_aws, create(f"def handler(event, context):\n    {body}\n", **more))
    assert (payload["errorType"], error) == (kind, "Unhandled")
    assert message in payload["errorMessage"]
    assert time.monotonic() - before < 3000


@pytest.mark.parametrize(("mode", "fails"), [(0o600, True), (0o750, True), (0o644, False)], ids=oct)
def test_invocation_fails_if_lambda_user_cannot_read_the_code(
    embedded_aws: EmbeddedAws, create: Create, mode: int, fails: bool
) -> None:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr(readable("index.py", mode), "def handler(event, context):\n    return 1\n")
    payload, error = invoke(embedded_aws, create("", code=code.getvalue()))
    assert (error == "Unhandled") is fails
    assert not fails or payload["errorMessage"] == "[Errno 13] Permission denied: '/var/task/index.py'"


def test_function_reaches_embedded_aws_with_its_variables(embedded_aws: EmbeddedAws, create: Create) -> None:
    name = create(
        "import boto3, os\n"
        "def handler(event, context):\n"
        "    sts, s3 = boto3.client('sts'), boto3.client('s3')\n"
        "    return [sts.get_caller_identity()['Arn'], sts.meta.endpoint_url, s3.meta.endpoint_url,\n"
        "            sts.meta.region_name, os.environ['BUCKET'], context.function_name,\n"
        "            context.get_remaining_time_in_millis() > 1000, list(os.environ.values())]\n",
        Environment={"Variables": {"BUCKET": "b", "AWS_ENDPOINT_URL_S3": "https://s3.us-west-2.amazonaws.com"}},
    )
    *seen, values = invoke(embedded_aws, name)[0]
    arn = f"arn:aws:sts::123456789012:assumed-role/lambda/{name}"
    assert seen == [arn, embedded_aws.endpoint, embedded_aws.endpoint, "us-west-2", "b", name, True]
    keys = embedded_aws.connection.credentials
    assert not [value for value in values if keys.secret_access_key in value or keys.access_key_id in value]


def test_invocations_share_code_and_have_separate_homes(embedded_aws: EmbeddedAws, create: Create) -> None:
    name = create(
        "import os\n"
        "from pathlib import Path\n"
        "def handler(event, context):\n"
        "    home = Path.home()\n"
        "    found = [path.name for path in home.iterdir()]\n"
        "    (home / 'written').touch()\n"
        "    return [__file__, os.environ['LAMBDA_TASK_ROOT'], found]\n"
    )
    first, second = invoke(embedded_aws, name)[0], invoke(embedded_aws, name)[0]
    assert first == second == [f"{first[1]}/index.py", first[1], []]


def test_changed_code_runs_at_next_invocation(embedded_aws: EmbeddedAws, create: Create) -> None:
    name = create("def handler(event, context):\n    return 'old'\n")
    assert invoke(embedded_aws, name)[0] == "old"
    changed = zipped("def handler(event, context):\n    return 'new'\n")
    embedded_aws.client("lambda").update_function_code(FunctionName=name, ZipFile=changed)
    assert invoke(embedded_aws, name)[0] == "new"


def test_event_invocation_returns_before_function_ends(
    embedded_aws: EmbeddedAws, create: Create, tmp_path: Path
) -> None:
    name = create(
        "import time\n"
        "from pathlib import Path\n"
        "def handler(event, context):\n"
        "    while not Path(event['until']).exists(): time.sleep(0.02)\n"
        "    print('done')\n"
    )
    invoke(embedded_aws, name, {"until": str(tmp_path / "returned")}, kind="Event")
    (tmp_path / "returned").touch()
    group = f"/aws/lambda/{name}"
    assert wait_until(lambda: group in log_groups(embedded_aws) and "done" in log_of(embedded_aws, group))


def test_function_can_invoke_itself_asynchronously(embedded_aws: EmbeddedAws, create: Create) -> None:
    name = create(
        "import boto3, json\n"
        "def handler(event, context):\n"
        "    if event['left']:\n"
        "        boto3.client('lambda').invoke(FunctionName=context.function_name, InvocationType='Event',\n"
        "                                      Payload=json.dumps({'left': event['left'] - 1}))\n"
        "    print('left', event['left'])\n"
    )
    invoke(embedded_aws, name, {"left": 2}, kind="Event")
    group = f"/aws/lambda/{name}"
    assert wait_until(lambda: group in log_groups(embedded_aws) and "left 0" in log_of(embedded_aws, group))


def test_dry_run_invokes_nothing(embedded_aws: EmbeddedAws, create: Create) -> None:
    name = create("def handler(event, context):\n    return 1\n")
    answer = embedded_aws.client("lambda").invoke(FunctionName=name, InvocationType="DryRun")
    assert answer["StatusCode"] == 204
    assert f"/aws/lambda/{name}" not in log_groups(embedded_aws)


def test_code_over_250_mib_unpacked_is_refused(create: Create) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as code:
        code.writestr("index.py", bytes(262_144_001))
    with pytest.raises(ClientError, match="Unzipped size must be smaller than 262144000 bytes"):
        create("", code=archive.getvalue())


def test_configured_log_group_replaces_the_default(embedded_aws: EmbeddedAws, create: Create) -> None:
    group = f"own-{uuid.uuid4().hex[:8]}"
    embedded_aws.client("logs").create_log_group(logGroupName=group)
    name = create("def handler(event, context):\n    print('hello')\n", LoggingConfig={"LogGroup": group})
    invoke(embedded_aws, name)
    assert "hello" in log_of(embedded_aws, group)
    assert f"/aws/lambda/{name}" not in log_groups(embedded_aws)


def test_missing_configured_log_group_is_not_created(embedded_aws: EmbeddedAws, create: Create) -> None:
    name = create("def handler(event, context):\n    print('hello')\n", LoggingConfig={"LogGroup": "never-made"})
    shown = embedded_aws.client("lambda").get_function_configuration(FunctionName=name)
    assert shown["LoggingConfig"]["LogGroup"] == "never-made"
    assert invoke(embedded_aws, name)[1] is None
    assert "never-made" not in log_groups(embedded_aws)


DESCRIBES_ITS_PROCESS = """
import os, signal, sys, threading
from pathlib import Path

def handler(event, context):
    own = {context.function_name, context.log_group_name, context.log_stream_name, str(Path.home()), os.getcwd()}
    own |= {os.environ[f"AWS_{name}"] for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")}
    return {
        "environment": {name: value for name, value in os.environ.items() if value not in own},
        "arguments": sys.argv,
        "program": sys.modules["__main__"].__file__,
        "path": sys.path[1:],
        "flags": list(sys.flags),
        "in its folder": os.getcwd() == sys.path[0] == os.environ["LAMBDA_TASK_ROOT"],
        "open files": len(os.listdir("/proc/self/fd")) - 1,
        "input left": sys.stdin.read(),
        "leads its session": os.getsid(0) == os.getpid(),
        "signals": [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE)],
        "threads": threading.active_count(),
        "streams": [[stream.encoding, stream.line_buffering] for stream in (sys.stdin, sys.stdout, sys.stderr)],
    }
"""
REPORTS_ITS_PROCESSES = """
import os, time
from pathlib import Path

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def handler(event, context):
    processes = [os.getpid(), os.getppid(), parent(os.getppid())]
    if event.get("file"):
        Path(event["file"] + "~").write_text(" ".join(map(str, processes)))
        os.rename(event["file"] + "~", event["file"])
        time.sleep(300)
    return processes
"""


def processes_of_running_invocation(aws: EmbeddedAws, name: str, folder: Path) -> list[int]:
    """Start an invocation that keeps running. Returns the IDs of its process, of its watcher and of the fork server."""
    pids = folder / "pids"
    invoke(aws, name, {"file": str(pids)}, kind="Event")
    assert wait_until(pids.exists)
    return [int(pid) for pid in pids.read_text().split()]


def test_process_of_function_is_the_same_whether_forked_or_with_a_new_interpreter(
    embedded_aws: EmbeddedAws, create: Create
) -> None:
    shared, error = invoke(embedded_aws, create(DESCRIBES_ITS_PROCESS))
    own, _ = invoke(embedded_aws, create(DESCRIBES_ITS_PROCESS, modules={"jmespath": ""}))
    assert error is None
    assert shared == own
    assert (shared["open files"], shared["input left"], shared["leads its session"]) == (3, "", True)


def test_function_imports_its_own_modules(embedded_aws: EmbeddedAws, create: Create) -> None:
    body = "import jmespath\ndef handler(event, context):\n    return jmespath.__version__\n"
    assert invoke(embedded_aws, create(body, modules={"jmespath": "__version__ = 'its own'"}))[0] == "its own"


def test_variables_of_function_reach_its_interpreter(embedded_aws: EmbeddedAws, create: Create) -> None:
    body = "import sys, time\ndef handler(event, context):\n    return [sys.flags.hash_randomization, time.tzname[0]]\n"
    name = create(body, Environment={"Variables": {"PYTHONHASHSEED": "0", "TZ": "JST-9"}})
    assert invoke(embedded_aws, name)[0] == [0, "JST"]


def test_invocation_leaves_no_state_for_the_next(embedded_aws: EmbeddedAws, create: Create) -> None:
    name = create(
        "import os, random, uuid, boto3\n"
        "def handler(event, context):\n"
        "    left = [os.environ.get('LEFT'), boto3.DEFAULT_SESSION, getattr(os, 'left', None)]\n"
        "    os.environ['LEFT'] = os.left = 'x'\n"
        "    boto3.setup_default_session(region_name='eu-north-1')\n"
        "    return [left, random.random(), str(uuid.uuid4())]\n"
    )
    first, second = invoke(embedded_aws, name)[0], invoke(embedded_aws, name)[0]
    assert first[0] == second[0] == [None, None, None]
    assert first[1] != second[1]
    assert first[2] != second[2]


LEAVES_A_CHILD = """
import subprocess, sys, time
def handler(event, context):
    # an orphan, and a child that holds the output of the function
    child = "subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=subprocess.DEVNULL)"
    left = subprocess.run([sys.executable, "-c", f"import subprocess; print({child}.pid)"], stdout=subprocess.PIPE)
    own = subprocess.Popen(["sleep", "600"], start_new_session=event["detached"])
    print("left", left.stdout.decode().strip(), own.pid, flush=True)
    time.sleep(event["seconds"])
"""


@pytest.mark.parametrize("detached", [False, True])
@pytest.mark.parametrize(("seconds", "error"), [(0, None), (600, "Sandbox.Timedout")])
def test_children_end_with_their_invocation(
    embedded_aws: EmbeddedAws, create: Create, detached: bool, seconds: int, error: str | None
) -> None:
    name = create(LEAVES_A_CHILD, Timeout=10 if seconds else 300)
    before = time.monotonic()
    payload, _ = invoke(embedded_aws, name, {"detached": detached, "seconds": seconds})
    assert time.monotonic() - before < 300
    assert (payload or {}).get("errorType") == error
    (line,) = [one for one in log_of(embedded_aws, f"/aws/lambda/{name}").splitlines() if one.startswith("left ")]
    assert not any(runs(int(pid)) for pid in line.split()[1:])


def test_invocations_run_concurrently(embedded_aws: EmbeddedAws, create: Create, tmp_path: Path) -> None:
    name = create(
        "import time\n"
        "from pathlib import Path\n"
        "def handler(event, context):\n"
        "    Path(event['own']).touch()\n"
        "    while not Path(event['other']).exists(): time.sleep(0.02)\n"
    )
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    invoke(embedded_aws, name, {"own": one, "other": two}, kind="Event")
    assert invoke(embedded_aws, name, {"own": two, "other": one}) == (None, None)


def test_output_larger_than_a_pipe_is_logged(embedded_aws: EmbeddedAws, create: Create) -> None:
    name = create("def handler(event, context):\n    print('x' * 200_000)\n")
    assert invoke(embedded_aws, name)[1] is None
    assert "x" * 200_000 in log_of(embedded_aws, f"/aws/lambda/{name}")


@pytest.fixture
def own_aws(tmp_path: Path) -> Iterator[EmbeddedAws]:
    """A server whose fork server no other test uses."""
    connection = lifecycle.start(tmp_path, Settings()).connection
    yield EmbeddedAws(connection=connection, log=tmp_path / lifecycle.LOG_FILE)
    lifecycle.stop(tmp_path)


def test_functions_run_after_the_fork_server_was_killed(own_aws: EmbeddedAws, tmp_path: Path) -> None:
    name = creator(own_aws)(REPORTS_ITS_PROCESSES, Timeout=300)
    still_running, _, fork_server = processes_of_running_invocation(own_aws, name, tmp_path)
    assert invoke(own_aws, name)[0][-1] == fork_server
    os.kill(fork_server, signal.SIGKILL)
    assert wait_until(lambda: not runs(fork_server))
    *_, another = invoke(own_aws, name)[0]
    os.kill(still_running, signal.SIGKILL)
    assert another != fork_server


def test_killed_embedded_aws_leaves_no_process_and_the_next_removes_its_folders(
    own_aws: EmbeddedAws, tmp_path: Path
) -> None:
    pids = processes_of_running_invocation(own_aws, creator(own_aws)(REPORTS_ITS_PROCESSES, Timeout=300), tmp_path)
    server = lifecycle.status(tmp_path)
    assert server is not None
    os.kill(server.pid, signal.SIGKILL)
    assert wait_until(lambda: not any(map(runs, pids)))
    assert wait_until(lambda: lifecycle.status(tmp_path) is None)

    left = f"trn-lambda-*-{server.pid}-*"
    assert list(Path(tempfile.gettempdir()).glob(left))
    lifecycle.start(tmp_path, Settings())
    assert list(Path(tempfile.gettempdir()).glob(left)) == []
