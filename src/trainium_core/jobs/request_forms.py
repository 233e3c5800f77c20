"""The forms of the keys of a job file."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from trainium_core.plan.settings.jobs import S3_FOLDER, SECRET_ARN
from trainium_core.setting_schema.forms import UnreadableError

S3_URL = "s3://"

_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_INPUT_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}"


@dataclass(frozen=True)
class Texts:
    """A list of strings."""

    allowed: str
    choices: tuple[str, ...] = ()

    def read(self, raw: Any) -> tuple[str, ...]:
        texts = list(cast("list[object]", raw)) if isinstance(raw, list | tuple) else [None]
        if not all(isinstance(text, str) and "\0" not in text for text in texts):
            raise UnreadableError(f"specify {self.allowed}")
        return tuple(cast("list[str]", texts))


def _table(raw: Any, allowed: str) -> Mapping[object, object]:
    if not isinstance(raw, Mapping):
        raise UnreadableError(f"specify {allowed}")
    return cast(Mapping[object, object], raw)


class Variables:
    """Environment variables by name. Names that the nodes set are refused."""

    allowed = 'a table such as { LEARNING_RATE = "0.001" }; the nodes set HEAD_NODE and names that begin with TRN_'
    choices = ()

    def read(self, raw: Any) -> dict[str, str]:
        variables = _table(raw, self.allowed)
        for name, value in variables.items():
            if not isinstance(name, str) or not re.fullmatch(_VARIABLE, name):
                raise UnreadableError(
                    f"{name!r} is not a valid variable name: use letters, digits and _, without a leading digit"
                )
            if not isinstance(value, str) or "\0" in value:
                raise UnreadableError(f"set {name} to a string, in quotation marks")
            if name.startswith("TRN_") or name == "HEAD_NODE":
                raise UnreadableError(f"remove {name}: each node sets it")
        return dict(cast(Mapping[str, str], variables))


class SecretArns:
    """Environment variables with the ARNs of their secret values."""

    allowed = (
        'a table such as { HF_TOKEN = "arn:aws:ssm:us-west-2:123456789012:parameter/hf-token" }: ARNs of SecureString '
        "parameters or Secrets Manager secrets"
    )
    choices = ()

    def read(self, raw: Any) -> dict[str, str]:
        arns = Variables().read(_table(raw, self.allowed))
        for name, arn in arns.items():
            if not re.fullmatch(SECRET_ARN, arn):
                # The message must not contain what was given: it may be the secret value itself.
                raise UnreadableError(f"set {name} to the ARN of a secret or parameter, not the secret value")
        return arns


class Inputs:
    """Inputs by name: each an S3 URL, or a local file or directory."""

    allowed = (
        'a table such as { tokens = "s3://my-data/tokens/", words = "words.json" }: S3 URLs (the URL of a folder '
        "ends with /), files and directories"
    )
    choices = ()

    def read(self, raw: Any) -> dict[str, str]:
        inputs = _table(raw, self.allowed)
        for name, place in inputs.items():
            if not isinstance(name, str) or not re.fullmatch(_INPUT_NAME, name):
                allowed = "up to 63 letters, digits, - and _, and begin with a letter or digit"
                raise UnreadableError(f"{name!r} is not a valid name of an input: use {allowed}")
            if not isinstance(place, str) or not place:
                raise UnreadableError(f"set {name} to an S3 URL or a path, in quotation marks")
            if place.startswith(S3_URL):
                if not re.fullmatch(S3_FOLDER, place):
                    raise UnreadableError(f"{place} is not an S3 URL of a file or folder in a bucket")
            elif not os.path.exists(place):  # noqa: PTH110 - Path.exists fails for names that are too long
                raise UnreadableError(f"there is no file or directory {place}")
        return dict(cast(Mapping[str, str], inputs))


class YesNo:
    """TOML's true or false."""

    allowed = "true or false"
    choices = ()

    def read(self, raw: Any) -> bool:
        if not isinstance(raw, bool):
            raise UnreadableError("write true or false, without quotation marks")
        return raw


@dataclass(frozen=True)
class Text:
    """Any text that is not blank and contains no null character."""

    allowed: str
    choices: tuple[str, ...] = ()

    def read(self, raw: Any) -> str:
        if not isinstance(raw, str) or not raw.strip() or "\0" in raw:
            raise UnreadableError(f"specify {self.allowed}")
        return raw
