"""Runs Lambda functions as local processes; moto requires Docker.

A Python function runs with this interpreter and can import boto3, as in the real runtime. Invocations of functions with
other runtimes fail. Functions receive none of the caller's AWS settings, and the embedded AWS as their only endpoint.
They are not sandboxed.
"""

import io
import json
import os
import shutil
import tempfile
import threading
import uuid
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moto.awslambda.utils import get_backend

from trainium_local import access, clock
from trainium_local.environment import Connection, safe_environment
from trainium_local.services import embedded_metrics, lambda_starter
from trainium_local.services.errors import Refused

MAX_UNPACKED = 262_144_000
"""Maximum size of a function's unzipped code in bytes (AWS Lambda Developer Guide, Lambda quotas)."""

_UNIX = 3  # where the archive was made: ZIP File Format Specification, 4.4.2.2

_endpoint: list[str] = []
_code: dict[str, tempfile.TemporaryDirectory[str]] = {}
_unpacking = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class LambdaInvocation:
    """The outcome of an invocation.

    Attributes:
        payload: JSON: the handler's result, or the error.
        failed: Whether the payload is an error.
        logs: Output of the invocation.
    """

    payload: str
    failed: bool
    logs: str


def use_endpoint(endpoint: str) -> None:
    """Let functions call the embedded AWS at `endpoint`."""
    _endpoint[:] = [endpoint]


def forget_code() -> None:
    """Remove the unpacked code."""
    with _unpacking:
        while _code:
            _code.popitem()[1].cleanup()


def clear_leftovers() -> None:
    """Remove the folders of servers that were killed. Other servers may do so concurrently."""
    prefix = _folder_prefix()
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*-*"):
        pid = folder.name.removeprefix(prefix).partition("-")[0]
        with suppress(FileNotFoundError):
            if pid.isdecimal() and not Path("/proc", pid).exists() and folder.lstat().st_uid == os.geteuid():
                shutil.rmtree(folder, ignore_errors=True)


def _folder_prefix() -> str:
    """Return the folder prefix of this PID namespace.

    A server sees, and cleans up after, only processes of its namespace.
    """
    return f"trn-lambda-{Path('/proc/self/ns/pid').stat().st_ino}-"


def _temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix=f"{_folder_prefix()}{os.getpid()}-")


def run(function: Any, event: Any) -> LambdaInvocation:
    """Invoke a function, moto's LambdaFunction, and wait. Its output is written to its log group, if that exists."""
    request_id = str(uuid.uuid4())
    group = _log_group(function)
    if function.package_type == "Zip" and str(function.run_time).startswith("python"):
        invocation = _run(function, event, request_id)
    else:
        runtime = f"{function.function_name} has the runtime {function.run_time or function.package_type}"
        invocation = _failure("Runtime.NotSupported", f"the embedded AWS runs Python functions only; {runtime}")
    if group:
        _write_logs(function, group, request_id, invocation.logs)
    return invocation


def call(arn: str, event: Any, *, caller: str, check: Callable[[Any], None]) -> None:
    """Invoke the function for another service. Like AWS, drop events for deleted functions or without permission.

    Args:
        arn: ARN of the function.
        event: The event.
        caller: The caller, for the log of the embedded AWS.
        check: Is called first, and raises an error if the permission is missing.
    """
    _, _, _, region, account_id, *_ = arn.split(":")
    try:
        function = get_backend(account_id, region).get_function(arn)
        check(function)
    except Exception as error:
        print(f"{caller}: {arn}: {error}", flush=True)
    else:
        run(function, event)


def invoke(function: Any, body: Any, request_headers: Any, response_headers: Any) -> str | bytes:
    """The Invoke API: RequestResponse waits, Event returns at once, DryRun does not run the function."""
    event = json.loads(body) if body else {}
    kind = request_headers.get("x-amz-invocation-type") or "RequestResponse"
    if kind == "DryRun":
        return ""
    if kind == "Event":
        name = f"lambda {function.function_name}"
        threading.Thread(target=run, args=(function, event), daemon=True, name=name).start()
        return ""
    invocation = run(function, event)
    if invocation.failed:
        response_headers["x-amz-function-error"] = "Unhandled"
    return invocation.payload.encode()


def _unreadable(archive: bytes) -> str | None:
    """Return the first entry that the function's user cannot read ("Lambda requires 644 and 755 permissions").

    Archives that were not made on Unix have no modes.
    """
    with zipfile.ZipFile(io.BytesIO(archive)) as code:
        for entry in code.infolist():
            needed = 0o005 if entry.is_dir() else 0o004
            if entry.create_system == _UNIX and entry.external_attr >> 16 & needed != needed:
                return entry.filename
    return None


def _run(function: Any, event: Any, request_id: str) -> LambdaInvocation:
    if (entry := _unreadable(function.code_bytes)) is not None:
        return _failure("PermissionError", f"[Errno 13] Permission denied: '/var/task/{entry}'")
    root = _unpacked(function.code_sha_256, function.code_bytes)
    with _temporary_folder() as home:
        result = Path(home) / "result.json"
        environment = _environment(function, root, home, result, request_id)
        ended = lambda_starter.run(environment, root, json.dumps(event).encode(), float(function.timeout))
        logs = ended.printed.decode(errors="replace")
        if ended.timed_out:
            message = f"{request_id} Task timed out after {float(function.timeout):.2f} seconds"
            return _failure("Sandbox.Timedout", message, printed=logs)
        try:
            return LambdaInvocation(**json.loads(result.read_text()), logs=logs)
        except (OSError, ValueError):
            message = f"{request_id} ended with exit code {ended.code}, no result"
            return _failure("Runtime.ExitError", message, printed=logs)


def _unpacked(digest: str, archive: bytes) -> Path:
    """Return the folder with the code, unpacked once for all invocations, so that they share Python's bytecode."""
    with _unpacking:
        folder = _code.get(digest)
        if folder is None:
            folder = _temporary_folder()
            with zipfile.ZipFile(io.BytesIO(archive)) as code:
                code.extractall(folder.name)
            _code[digest] = folder
    return Path(folder.name)


def _environment(function: Any, root: Path, home: str, result: Path, request_id: str) -> dict[str, str]:
    own = lambda_starter.inherited_environment() | {
        name: str(value) for name, value in (function.environment_vars or {}).items()
    }
    keys = access.role_credentials(function.role, session=function.function_name, region=function.region)
    connection = Connection(endpoint=_endpoint[0], region=function.region, credentials=keys)
    # After the function's variables, so that none of them overrides the endpoint.
    return safe_environment(own, connection) | {
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.run_time}",
        "AWS_LAMBDA_FUNCTION_NAME": function.function_name,
        "AWS_LAMBDA_FUNCTION_VERSION": str(function.version),
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_size),
        "AWS_LAMBDA_LOG_GROUP_NAME": function.logs_group_name,
        "AWS_LAMBDA_LOG_STREAM_NAME": request_id,
        "LAMBDA_TASK_ROOT": str(root),
        "_HANDLER": str(function.handler),
        "HOME": home,
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRN_LAMBDA_ARN": function.function_arn,
        "TRN_LAMBDA_CLOCK_AHEAD": str(clock.seconds_ahead()),
        "TRN_LAMBDA_REQUEST_ID": request_id,
        "TRN_LAMBDA_RESULT": str(result),
        "TRN_LAMBDA_TIMEOUT": str(function.timeout),
    }


def _failure(kind: str, message: str, *, printed: str = "") -> LambdaInvocation:
    payload = json.dumps({"errorMessage": message, "errorType": kind})
    return LambdaInvocation(payload=payload, failed=True, logs=f"{printed}{message}\n")


def _log_group(function: Any) -> str | None:
    """Return the log group, if it exists. Only the default group is created at an invocation.

    Lambda also creates a configured group, but only if the function's role may do so. Those of this package may not.
    """
    name = function.logs_group_name
    if not vars(function).get("logging_config"):
        function.logs_backend.ensure_log_group(name)
    return name if name in function.logs_backend.groups else None


def _write_logs(function: Any, group: str, request_id: str, logs: str) -> None:
    lines = [f"START RequestId: {request_id}", *logs.splitlines(), f"END RequestId: {request_id}"]
    # The function, or the deletion of its stack, may have deleted the group meanwhile.
    if group in function.logs_backend.groups:
        function.save_logs("\n".join(line or " " for line in lines))
        for line in lines:
            embedded_metrics.extract(line, account_id=function.account_id, region=function.region)


def init(original: Any, function: Any, account_id: str, spec: dict[str, Any], region: str, version: Any = 1) -> None:
    """Keep LoggingConfig. moto drops it, so every function would log to /aws/lambda/<name>."""
    original(function, account_id, spec, region, version)
    _set_log_group(function, spec)


def checked_content(original: Any, code: Any) -> tuple[bytes, int, str, str]:
    """Check the code: moto accepts any size, and files that are not archives."""
    content = original(code)
    try:
        with zipfile.ZipFile(io.BytesIO(content[0])) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile as error:
        raise Refused("InvalidParameterValueException", "Could not unzip uploaded file.") from error
    if size > MAX_UNPACKED:
        raise Refused("InvalidParameterValueException", f"Unzipped size must be smaller than {MAX_UNPACKED} bytes")
    return content


def get_configuration(original: Any, function: Any, *arguments: Any, **named: Any) -> dict[str, Any]:
    configuration = original(function, *arguments, **named)
    own = vars(function).get("logging_config") or {}
    return configuration | {"LoggingConfig": {"LogFormat": "Text", "LogGroup": function.logs_group_name} | own}


def update_configuration(original: Any, function: Any, config_updates: dict[str, Any]) -> dict[str, Any]:
    _set_log_group(function, config_updates)
    return original(function, config_updates)


def _set_log_group(function: Any, spec: dict[str, Any]) -> None:
    config = spec.get("LoggingConfig") or {}
    if config.get("LogGroup"):
        function.logging_config = config
        function.logs_group_name = config["LogGroup"]
