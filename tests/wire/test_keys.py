"""Names of the objects of instances."""

import pytest

from trainium_wire.keys import instance_key, instance_name, key_instance


@pytest.mark.parametrize("role_id", ["AROAEXAMPLEEXAMPLE0", None])
def test_key_of_an_instance_names_the_instance(role_id: str | None) -> None:
    key = instance_key("nodes", instance_name("i-0abc", role_id))
    assert key_instance(key, "nodes") == "i-0abc"


@pytest.mark.parametrize(
    "key", ["nodes/x.json", "nodes/a/i-0abc.json", "logs/i-0abc.json", "nodes/i-0abc.json.txt", "nodes/a:i-0abc.json"]
)
def test_other_keys_name_no_instance(key: str) -> None:
    assert key_instance(key, "nodes") is None
