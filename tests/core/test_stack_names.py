"""Two clusters of an account are distinguished by name, even if one name is a prefix of the other."""

import re
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.core.plans import cluster_names, problems_of
from trainium_core.naming import job_id_prefix, stack_names

LONGER = st.tuples(cluster_names, cluster_names).map(lambda two: (two[0], f"{two[0]}-{two[1]}"[:32].rstrip("-")))


@given(LONGER | st.tuples(cluster_names, cluster_names))
def test_resource_names_do_not_begin_with_a_stack_name_of_another_cluster(names: tuple[str, str]) -> None:
    assume(names[0] != names[1])
    for one, other in product(*(stack_names(name).values() for name in names)):
        assert not f"{other}-Resource".startswith(f"{one}-")


@given(LONGER | st.tuples(cluster_names, cluster_names))
def test_job_names_do_not_begin_with_the_prefix_of_another_cluster(names: tuple[str, str]) -> None:
    assume(names[0] != names[1])
    one, other = map(job_id_prefix, names)
    assert not f"{other}train".startswith(one)


@given(cluster_names)
def test_stack_names_are_valid_for_cloudformation(name: str) -> None:
    assert all(re.fullmatch("[a-zA-Z][-a-zA-Z0-9]{0,127}", stack) for stack in stack_names(name).values())


@pytest.mark.parametrize("name", ["two--hyphens", "last-", "-first", "Upper", "1st", "x" * 33, ""])
def test_invalid_cluster_name_is_refused(name: str) -> None:
    assert [problem.key for problem in problems_of(cluster_name=name)] == ["cluster_name"]
