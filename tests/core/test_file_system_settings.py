"""Settings of the shared file systems: valid values and refusals."""

from typing import Any

import pytest

from tests.core.plans import OWN_EFS, OWN_LUSTRE, OWN_VPC, the_problem


@pytest.mark.parametrize("got", [1300, "3600", "-2400"])
def test_lustre_size_that_fsx_refuses_is_refused(got: Any) -> None:
    assert "1200, or a multiple of 2400" in the_problem(fsx_lustre=got).allowed


@pytest.mark.parametrize("got", ["yes", "fs-xyz", 1200])
def test_efs_file_system_is_new_or_an_id(got: Any) -> None:
    assert the_problem(efs=got).allowed == "new, or the id of a file system, such as fs-0123456789abcdef0"


@pytest.mark.parametrize("key", ["fsx_lustre_mount_name", "fsx_lustre_security_group"])
def test_existing_lustre_requires_mount_name_and_security_group(key: str) -> None:
    problem = the_problem(**OWN_VPC, **{name: value for name, value in OWN_LUSTRE.items() if name != key})
    assert problem.key == key
    assert f"describe-file-systems --region us-west-2 --file-system-ids {OWN_LUSTRE['fsx_lustre']}" in problem.fix


@pytest.mark.parametrize("file_system", [OWN_LUSTRE, OWN_EFS])
def test_existing_file_system_with_a_new_vpc_is_refused(file_system: dict[str, Any]) -> None:
    problem = the_problem(**file_system)
    assert problem.key in ("fsx_lustre", "efs")
    assert "trn:vpc_id and trn:subnet_id" in problem.fix


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"fsx_lustre_mount_name": "abcdefgh"}, "fsx_lustre_mount_name"),
        ({"fsx_lustre_security_group": OWN_LUSTRE["fsx_lustre_security_group"]}, "fsx_lustre_security_group"),
        ({"efs_security_group": OWN_EFS["efs_security_group"]}, "efs_security_group"),
    ],
)
@pytest.mark.parametrize("new", [{}, {"fsx_lustre": 1200, "efs": "new"}])
def test_existing_file_system_settings_require_one(settings: dict[str, Any], key: str, new: dict[str, Any]) -> None:
    problem = the_problem(**settings, **new)
    assert problem.key == key
    assert ("a new file system has its own" in problem.fix) == bool(new)


@pytest.mark.parametrize("file_systems", [{}, {**OWN_VPC, **OWN_LUSTRE, **OWN_EFS}])
def test_retention_without_new_file_system_is_refused(file_systems: dict[str, Any]) -> None:
    assert the_problem(file_systems_at_destroy="retain", **file_systems).key == "file_systems_at_destroy"


def test_retained_lustre_in_a_new_vpc_is_refused() -> None:
    problem = the_problem(file_systems_at_destroy="retain", fsx_lustre=1200)
    assert "its subnet could not be deleted" in problem.allowed
