"""What Kubernetes refuses in an object: its schemas, closed, and rules of its validation that are in no schema."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator

SCHEMAS = json.loads((Path(__file__).parent / "kubernetes.json").read_text())
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PART = "[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_DNS = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_QUALIFIED = re.compile(rf"({_DNS}/)?{_PART}")
_FIELD_PATHS = ("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName")
_HOST_PATHS = ("", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice")


@cache
def _validator(kind: str) -> Draft7Validator:
    reference = f"#/definitions/{SCHEMAS['kinds'][kind]}"
    return Draft7Validator({"$ref": reference, "definitions": SCHEMAS["definitions"]})


def problems(document: Mapping[str, Any]) -> list[str]:
    """Why Kubernetes refuses the object; empty if no known rule does."""
    errors = [
        f"{'.'.join(map(str, error.absolute_path))}: {error.message}"
        for error in _validator(document["kind"]).iter_errors(document)
    ]
    if errors:
        return errors
    found = list(_metadata_problems(document["metadata"]))
    if document["kind"] == "Node":
        found += _taint_problems(document.get("spec", {}).get("taints") or [])
    if document["kind"] == "DaemonSet":
        found += _daemon_set_problems(document["spec"])
    return found


def _metadata_problems(metadata: Mapping[str, Any]) -> Iterator[str]:
    for field in ("annotations", "labels"):
        for key, value in (metadata.get(field) or {}).items():
            if not _QUALIFIED.fullmatch(key):
                yield f"metadata.{field}: {key} is not a qualified name"
            if field == "labels" and not re.fullmatch(f"({_PART})?", value):
                yield f"metadata.labels: {value} is not a label value"


def _taint_problems(taints: list[Mapping[str, Any]]) -> Iterator[str]:
    for taint in taints:
        if not _QUALIFIED.fullmatch(taint["key"]):
            yield f"spec.taints: {taint['key']} is not a qualified name"
        if taint["effect"] not in TAINT_EFFECTS:
            yield f"spec.taints: {taint['effect']} is not one of {', '.join(TAINT_EFFECTS)}"
        if not re.fullmatch(f"({_PART})?", taint.get("value", "")):
            yield f"spec.taints: {taint['value']} is not a label value"
    pairs = [(taint["key"], taint["effect"]) for taint in taints]
    if len(set(pairs)) < len(pairs):
        yield "spec.taints: taints must be unique by key and effect"


def _daemon_set_problems(spec: Mapping[str, Any]) -> Iterator[str]:
    labels, pod = spec["template"]["metadata"]["labels"], spec["template"]["spec"]
    if not spec["selector"]["matchLabels"].items() <= labels.items():
        yield "spec.selector: does not match the labels of the template"
    if pod.get("restartPolicy", "Always") != "Always":
        yield "spec.template.spec.restartPolicy: only Always is supported"
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    for name, volume in volumes.items():
        if volume.get("hostPath", {}).get("type", "") not in _HOST_PATHS:
            yield f"volumes.{name}: {volume['hostPath']['type']} is no type of hostPath"
    for container in pod["containers"]:
        if not re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", container["name"]):
            yield f"containers: {container['name']} is not a DNS label"
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                yield f"volumeMounts: there is no volume {mount['name']}"
        for variable in container.get("env", []):
            path = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", _FIELD_PATHS[0])
            if path not in _FIELD_PATHS:
                yield f"env.{variable['name']}: {path} is not supported"
