"""Checks commands of the AWS CLI against botocore's service models, of which the AWS CLI makes commands and options."""

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.validate import ParamValidator

_MODELS = botocore.session.get_session()
_ADDED_BY_THE_CLI = {"s3", "sso", "configure"}
_ADDED_OPERATIONS = {("eks", "update-kubeconfig")}
_GLOBAL_OPTIONS = {"--region", "--output", "--query", "--profile"}
_REQUEST_FILE = "--cli-input-json"


def command_error(command: str) -> str:
    """Why the AWS CLI would refuse the operation, an option or the form of a value; empty if it would not."""
    _, service, operation, *words = shlex.split(command)
    if service in _ADDED_BY_THE_CLI or (service, operation) in _ADDED_OPERATIONS:
        return ""
    if service not in _MODELS.get_available_services():
        return f"{service} is not a service"
    model = _MODELS.get_service_model(service)
    operations = {xform_name(name, "-"): name for name in model.operation_names}
    if operation not in operations:
        return f"{service} has no operation {operation}"
    shape: Any = model.operation_model(operations[operation]).input_shape
    members = {f"--{xform_name(name, '-')}": name for name in shape.members}
    request = dict[str, Any]()
    if _REQUEST_FILE in words:
        return ""  # the file has the request
    for option, values in _options(words):
        if option in _GLOBAL_OPTIONS:
            continue
        named = option if option in members else option.replace("--no-", "--", 1)
        if named not in members:
            return f"{service} {operation} has no option {option}"
        member = shape.members[members[named]]
        if member.type_name == "boolean":
            request[members[named]] = named == option
        else:
            request[members[named]] = _value(values, member)
    return ParamValidator().validate(request, shape).generate_report()


def _options(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    found = list[tuple[str, list[str]]]()
    for word in words:
        if word.startswith("--"):
            found.append((word, []))
        else:
            found[-1][1].append(word)
    return found


def _value(values: Sequence[str], shape: Any) -> Any:
    if values and values[0].startswith(("{", "[")):
        return json.loads(values[0])
    return (
        [_shorthand(value, shape.member) for value in values]
        if shape.type_name == "list"
        else (_shorthand(" ".join(values), shape))
    )


def _shorthand(text: str, shape: Any) -> Any:
    """A value in the shorthand syntax of the AWS CLI, such as `Name=tag:a,Values=1,2`."""
    if shape.type_name == "integer":
        return int(text) if text.isdecimal() else text
    if shape.type_name == "list":
        return [_shorthand(part, shape.member) for part in text.strip("[]").split(",")]
    if shape.type_name != "structure":
        return text
    pairs = re.findall(r"(\w+)=(\{.*?\}|.*?)(?=,\w+=|$)", text.removeprefix("{").removesuffix("}"))
    return {key: _shorthand(value, shape.members[key]) if key in shape.members else value for key, value in pairs}
