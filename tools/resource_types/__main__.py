"""python -m tools.resource_types [TYPE...]: derive the calls of resource types, sweep them, write derived_types.toml.

With names, or beginnings of names, only those types are done again. Takes ten minutes for all.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from tools.resource_types import sweep
from tools.resource_types.derive import HINTS, services_of

TABLE = Path(__file__).resolve().parents[2] / "src/trainium_local/resources/derived_types.toml"
_HEAD = """\
# Written by `python -m tools.resource_types`: do not edit, see tools/resource_types/hints.toml.
# Types that the services of moto provision, with the calls that do it. Each was created, read, tagged and deleted.
moto = "{moto}"
"""


def to_toml(rows: dict[str, Any]) -> str:
    """The table of the rows. Fields that say nothing are left out."""
    tables: list[str] = [_HEAD.format(moto=version("moto"))]
    for name, row in sorted(rows.items()):
        fields = {key: value for key, value in row.items() if value not in ("", {}, [], None, False)}
        tables.append("\n".join([f'[types."{name}"]', *(f"{key} = {_value(value)}" for key, value in fields.items())]))
    return "\n\n".join(tables).replace('"\n\n\n[', '"\n\n[') + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


def _key(key: str) -> str:
    return key if key.isalnum() else json.dumps(key)


def main(chosen: list[str]) -> None:
    sweep.start_server()
    hand_written = sweep.hand_written()
    names: list[str] = [
        name
        for name in PROVIDER_SCHEMA_MANAGER.get_resource_types(sweep.REGION)
        if name.startswith("AWS::") and name not in hand_written and name.split("::")[1] not in _WITHOUT_SERVICE
    ]
    wanted = [name for name in names if not chosen or name.startswith(tuple(chosen))]
    before = tomllib.loads(TABLE.read_text()).get("types", {}) if chosen else {}
    sweeping = sweep.Sweep()
    for name in wanted:
        document = sweep.document_of(name)
        if name in HINTS or services_of(document):
            sweeping.run(name)
    kept = {name: row for name, row in before.items() if name not in wanted and name not in hand_written}
    TABLE.write_text(to_toml(kept | {name: row for name, row in sweeping.passed.items() if name in wanted}))
    for name, reason in sorted(sweeping.failed.items()):
        if name in wanted and reason != "no row":
            print(f"{name}: {reason}")
    print(f"{len(kept) + len(sweeping.passed)} types pass, {len(sweeping.failed)} of the derived do not")


_WITHOUT_SERVICE = ("CDK", "CloudFormation", "Serverless")

if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # the server has threads that never end
