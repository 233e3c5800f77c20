"""What `Ref` gives of a type, from the AWS Construct Library: `get queueRef() { return { queueUrl: this.ref, ...`."""

from __future__ import annotations

import re
import tarfile
from functools import cache
from importlib.resources import files

_CLASS = re.compile(r'CFN_RESOURCE_TYPE_NAME="([^"]+)"')
_GETTER = re.compile(r"get \w+Ref\(\)\{return\{(.*?)\}\}")
_PARTS = re.compile(
    r"(\w+):(?:this\.ref|cdk\(\)\.Fn\.select\((\d+),cdk\(\)\.Fn\.split\(\"\|\",this\.ref\)\))(?=[,}]|$)"
)


@cache
def references() -> dict[str, list[str]]:
    """Type -> the identifiers that make its `Ref`, in their order and in camel case."""
    (bundle,) = [one for one in files("aws_cdk._jsii").iterdir() if one.name.startswith("aws-cdk-lib@")]
    found: dict[str, list[str]] = {}
    with bundle.open("rb") as stream, tarfile.open(fileobj=stream) as archive:
        for member in archive:
            if member.name.endswith(".generated.js") and (source := archive.extractfile(member)):
                text = source.read().decode()
                for part in text.split("class Cfn")[1:]:
                    kind, getter = _CLASS.search(part), _GETTER.search(part)
                    if kind and getter:
                        found[kind[1]] = [name for name, _ in _PARTS.findall(getter[1])]
    return found


def ref_of(resource_type: str, identifier: list[str]) -> list[str]:
    """The parts of the primary identifier that `Ref` gives."""
    named = {name.lower() for name in references().get(resource_type, [])}
    kind = resource_type.rsplit("::", 1)[-1].lower()
    kept = [path for path in identifier if {path.lower(), f"{kind}{path.lower()}"} & named]
    return kept or identifier
