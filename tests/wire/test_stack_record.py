"""The record of a deployed cluster: read back as written, and refused with the reason otherwise."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainium_wire.stack_record import SCHEMA, StackRecord, StackRecordError

NAME = "/trn/research/Stack/0a1b2c3d"
VALUE = {"schema": SCHEMA, "engine": "cluster", "bucket": "a-bucket", "cache_url": "s3://a-cache/folder"}

texts = st.text(min_size=1)
records = st.builds(
    StackRecord,
    cluster=st.just("research"),
    stack=st.just("Stack"),
    construct=st.just("0a1b2c3d"),
    engine=st.sampled_from(["cluster", "pcs", "sagemaker"]),
    bucket=texts,
    cache_url=texts,
    settings=st.dictionaries(texts, st.one_of(texts, st.integers(), st.lists(texts))),
    instance_type=st.one_of(st.none(), st.just({"name": "trn9"})),
    group=st.one_of(st.none(), texts),
    sleep_function=st.one_of(st.none(), texts),
    topic_arn=st.one_of(st.none(), texts),
    role_arn=st.one_of(st.none(), texts),
    subnet_ids=st.lists(texts, max_size=2).map(tuple),
    security_group_ids=st.lists(texts, max_size=2).map(tuple),
    kms_key_arn=st.one_of(st.none(), texts),
)


@given(records)
def test_record_is_read_back_unchanged(record: StackRecord) -> None:
    assert StackRecord.from_parameter(record.name, json.dumps(record.value)) == record


def test_record_of_another_schema_is_refused_with_advice() -> None:
    with pytest.raises(
        StackRecordError, match="has the schema 99, and this version of trn reads the schema 1: use the"
    ):
        StackRecord.from_parameter(NAME, json.dumps({**VALUE, "schema": SCHEMA + 98}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("/trn/research", json.dumps(VALUE)),
        (NAME, ""),
        (NAME, "[]"),
        (NAME, "{}"),
        (NAME, json.dumps({"schema": SCHEMA})),
        (NAME, json.dumps({**VALUE, "bucket": ""})),
        (NAME, json.dumps({**VALUE, "group": 1})),
        (NAME, json.dumps({**VALUE, "settings": []})),
        (NAME, json.dumps({**VALUE, "subnet_ids": "subnet-1"})),
    ],
)
def test_other_parameter_is_refused_with_its_name(name: str, text: str) -> None:
    with pytest.raises(StackRecordError, match=f"{name} is not a record of a stack"):
        StackRecord.from_parameter(name, text)
