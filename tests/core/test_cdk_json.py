"""Writing settings into cdk.json changes these settings and no other character."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_core.plan.cdk_json import with_settings

SETTINGS = {"ami": "ami-0123456789abcdef0", "ami_parameter": "/aws/x"}

texts = st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda v: st.lists(v) | st.dictionaries(texts, v)
)
documents = st.dictionaries(texts.filter(lambda key: key != "context"), values, max_size=3)
contexts = st.none() | st.dictionaries(texts | st.sampled_from(["trn:ami", "trn:region"]), values, max_size=4)


def test_new_setting_is_appended_with_the_same_indent() -> None:
    text = '{\n\t"context": {\n\t\t"trn:nodes": 2,\n\t\t"x": [1,2]\n\t}\n}\n'
    written = with_settings(text, {"ami": "ami-1"})
    assert written == '{\n\t"context": {\n\t\t"trn:nodes": 2,\n\t\t"trn:ami": "ami-1",\n\t\t"x": [1,2]\n\t}\n}\n'


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("{}", '{"context": {"trn:ami": "ami-1"}}'),
        ('{\n  "app": "x"\n}\n', '{\n  "app": "x",\n  "context": {\n    "trn:ami": "ami-1"\n  }\n}\n'),
        ('{\n    "context": {}\n}', '{\n    "context": {\n        "trn:ami": "ami-1"\n    }\n}'),
    ],
)
def test_missing_or_empty_context_is_created(text: str, written: str) -> None:
    assert with_settings(text, {"ami": "ami-1"}) == written


@given(document=documents, context=contexts, indent=st.sampled_from([None, 0, 1, 2, 4, "\t"]))
def test_written_settings_are_read_back(document: dict[str, Any], context: dict[str, Any] | None, indent: Any) -> None:
    whole = document if context is None else {"context": context, **document}
    for text in (json.dumps(whole, indent=indent), json.dumps(whole, indent=indent, ensure_ascii=False) + "\n"):
        read = json.loads(with_settings(text, SETTINGS))
        changed = {f"trn:{name}": value for name, value in SETTINGS.items()}
        assert read == {**whole, "context": {**(context or {}), **changed}}
        assert with_settings(with_settings(text, SETTINGS), SETTINGS) == with_settings(text, SETTINGS)
