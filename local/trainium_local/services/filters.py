"""Filters of DescribeInstances with wildcards, which EC2 takes: `trn*`. moto compares the text as it stands."""

import re
from collections.abc import Sequence
from typing import Any

from moto.ec2.utils import simple_aws_filter_to_re


def instance_value_in_filter_values(instance_value: Any, filter_values: Sequence[str]) -> bool:
    """Whether what an instance has, one value or several, matches one of the values asked for."""
    patterns = [re.compile(simple_aws_filter_to_re(value)) for value in filter_values]
    found = instance_value if isinstance(instance_value, list) else [instance_value]
    return any(pattern.match(_as_asked(value)) for value in found for pattern in patterns)


def _as_asked(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
