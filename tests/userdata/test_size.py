"""User data within what EC2 takes."""

import pytest

from tests.userdata.plans import PLACES, every_plan, plan_for, plan_id
from trainium_core.facts import facts
from trainium_core.plan import Plan
from trainium_core.problems import PlanError
from trainium_userdata import check_user_data, node_user_data
from trainium_userdata.size import longest_places

LIMIT: int = facts()["user_data"]["limit_bytes"]
ROOM_FOR_A_SETUP_SCRIPT = 4_500


def size_of(plan: Plan) -> int:
    return len(node_user_data(plan, longest_places(plan)).encode())


def script_of(size: int) -> str:
    return "#" * size


@pytest.mark.parametrize("plan", every_plan(), ids=plan_id)
def test_every_plan_leaves_room_for_a_setup_script(plan: Plan):
    assert size_of(plan) <= LIMIT - ROOM_FOR_A_SETUP_SCRIPT


def test_the_size_is_taken_with_the_longest_places():
    plan = plan_for("trn1.32xlarge")
    assert size_of(plan) > len(node_user_data(plan, PLACES).encode())


def test_a_setup_script_that_just_fits_is_accepted():
    room = LIMIT - size_of(plan_for("trn1.32xlarge", setup_script=script_of(1))) + 1
    plan = plan_for("trn1.32xlarge", setup_script=script_of(room))
    assert size_of(plan) == LIMIT
    check_user_data(plan)


def test_a_setup_script_too_large_is_refused_with_the_numbers():
    room = LIMIT - size_of(plan_for("trn1.32xlarge", setup_script=script_of(1))) + 1
    with pytest.raises(PlanError) as refused:
        check_user_data(plan_for("trn1.32xlarge", setup_script=script_of(room + 42)))
    (problem,) = refused.value.problems
    assert problem.key == "setup_script"
    assert problem.got == f"a script of {room + 42:,} bytes, which makes user data of 16,426 bytes"
    assert problem.allowed == f"user data of 16,384 bytes, which leaves {room:,} bytes for the script"
    assert problem.fix.startswith("shorten the script by 42 bytes")


def test_bytes_are_counted_not_letters():
    room = LIMIT - size_of(plan_for("trn1.32xlarge", setup_script=script_of(1))) + 1
    with pytest.raises(PlanError):
        check_user_data(plan_for("trn1.32xlarge", setup_script="é" * (room - 1)))
