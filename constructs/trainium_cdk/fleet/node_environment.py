"""Environment variables of nodes. Their values may be CDK tokens."""

import base64
import json
import re
from collections.abc import Mapping
from typing import cast

from aws_cdk import Fn, SecretValue, Stack, Token
from constructs import Construct

from trainium_cdk.checks import refuse

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_OF_THE_NODE = (
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "HOME",
    "NEURON_COMPILE_CACHE_URL",
    "NEURON_LOGICAL_NC_CONFIG",
    "PATH",
    "USER",
    "VIRTUAL_ENV",
)
"""Variables that the node sets. Another value would break the node's verification or the shells of its users."""

_OF_TORCHRUN = ("LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "NEURON_RT_ROOT_COMM_ID", "RANK", "WORLD_SIZE")
"""Variables that torchrun and torch_xla set for the processes of a job."""

_READ_IN_JOB = "grant the fleet permission to read the secret, and read it in the job"
_SECRETS = ("{{resolve:secretsmanager:", "{{resolve:ssm-secure:")
"""How CloudFormation's references to secrets begin."""


def encoded_environment(construct: Construct, environment: Mapping[str, str]) -> Mapping[str, str]:
    """Variables with their values in base64; CloudFormation encodes tokens. Raises PropsError for an invalid name or
    value."""
    for name, value in cast(Mapping[object, object], environment).items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            allowed = "a variable name of letters, digits and underscores that does not begin with a digit"
            raise refuse(construct, "environment", name, allowed=allowed, fix="rename it, such as DATA_URL")
        if name in _OF_TORCHRUN:
            allowed = f"any name except {', '.join(_OF_TORCHRUN)}, which torchrun sets for each job"
            raise refuse(construct, "environment", name, allowed=allowed, fix="remove it")
        if name in _OF_THE_NODE or name.startswith("TRN_"):
            allowed = f"any name except {', '.join(_OF_THE_NODE)} and TRN_..., which the node sets"
            raise refuse(construct, "environment", name, allowed=allowed, fix="rename it")
        if not isinstance(value, str):
            got, fix = value, f"write {name}={str(value)!r}"
            if isinstance(value, SecretValue):
                got, fix = "a secret", _READ_IN_JOB
            allowed = f"text as the value of {name}, which everyone who reads the template can see"
            raise refuse(construct, "environment", got, allowed=allowed, fix=fix)
        if any(reference in json.dumps(Stack.of(construct).resolve(value)) for reference in _SECRETS):
            allowed = f"a value of {name} that is not a secret: every user of a node can read it"
            raise refuse(construct, "environment", "an unwrapped secret", allowed=allowed, fix=_READ_IN_JOB)
    return {name: _encoded(value) for name, value in environment.items()}


def _encoded(value: str) -> str:
    return Fn.base64(value) if Token.is_unresolved(value) else base64.b64encode(value.encode()).decode()
