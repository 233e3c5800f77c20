"""JSON that other machines have written."""

import pytest

from trainium_wire.formats import json_value
from trainium_wire.job import Job
from trainium_wire.membership import Membership
from trainium_wire.node_record import NodeRecord
from trainium_wire.usage import NodeUsage

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "read", [json_value, NodeUsage.from_json, Membership.from_json, NodeRecord.from_json, Job.from_json]
)
def test_json_that_is_nested_too_deeply_is_a_value_error(read: object) -> None:
    assert callable(read)
    with pytest.raises(ValueError, match="nested too deeply"):
        read(DEEP)
