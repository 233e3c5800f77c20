"""Dynamic references: replaces {{resolve:...}} with the value of an SSM parameter or a secret.

Parameters are resolved anywhere in a template, at each deployment. Secrets are resolved only when a resource is created
or updated, so a new secret value alone updates nothing, as on AWS.
"""

import json
import re
from typing import Any

from botocore.exceptions import ClientError

from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.values import with_texts
from trainium_local.resources import api

_PARAMETER = re.compile(r"\{\{resolve:(ssm|ssm-secure):([^{}]+)\}\}")
_SECRET = re.compile(r"\{\{resolve:secretsmanager:(arn:[^:{}]+(?::[^:{}]*){5}|[^:{}]+)((?::[^:{}]*){0,4})\}\}")
_VERSIONED = re.compile(r"(arn:.+?|[^:]+)(?::(\d+))?")


def with_parameters(text: str, region: str) -> str:
    """Return the text with its SSM parameters resolved. Raises ValidationError with CloudFormation's message."""
    return _PARAMETER.sub(lambda match: _parameter(match[1], match[2], region), text)


def with_secrets(value: Any, region: str) -> Any:
    """Return a resource's properties with their secrets resolved. Raises ValidationError, or botocore's ClientError."""
    return with_texts(value, lambda text: _SECRET.sub(lambda match: _secret(match[1], match[2], region), text))


def _parameter(store: str, reference: str, region: str) -> str:
    parts = _VERSIONED.fullmatch(reference.strip())
    if parts is None:
        raise ValidationError(
            f"Incorrect format is used in the following SSM reference: [{{{{resolve:{store}:{reference}}}}}]"
        )
    # AWS's public parameters have one version here.
    name = parts[1] if parts[1].startswith("/aws/service/") else parts[0]
    try:
        found = api.call("ssm", "GetParameter", region, {"Name": name, "WithDecryption": True})["Parameter"]
    except ClientError as error:
        if not api.is_missing(error):
            raise
        raise ValidationError(f"Parameters: [{store}:{reference}] cannot be found.") from error
    if store == "ssm" and found["Type"] == "SecureString":
        raise ValidationError(f"Non-secure ssm prefix was used for secure parameter {parts[1]}")
    return found["Value"]


def _secret(secret_id: str, rest: str, region: str) -> str:
    _, key, stage, version = [*rest.removeprefix(":").split(":"), "", "", "", ""][:4]
    arguments = {"SecretId": secret_id, "VersionStage": stage or None, "VersionId": version or None}
    text = api.call("secretsmanager", "GetSecretValue", region, arguments)["SecretString"]
    if not key:
        return text
    try:
        return str(json.loads(text)[key])
    except ValueError as error:
        raise ValidationError("Could not parse SecretString JSON") from error
    except (KeyError, TypeError) as error:
        raise ValidationError("Could not find a value associated with JSONKey in SecretString") from error
