"""File systems in memory. By default they exist in the existing network, in a region that has FSx and EFS."""

from dataclasses import dataclass
from typing import Self

from tests.core.fake_network import SUBNET, VPC
from tests.core.plans import EXISTING_EFS, EXISTING_LUSTRE
from trainium_core.aws.storage import EfsFileSystem, FsxFileSystem, MountTarget

LUSTRE = FsxFileSystem(
    file_system_id=EXISTING_LUSTRE["fsx_lustre"],
    kind="LUSTRE",
    state="AVAILABLE",
    vpc_id=VPC.vpc_id,
    subnet_id=SUBNET.subnet_id,
    mount_name=EXISTING_LUSTRE["fsx_lustre_mount_name"],
    security_group_ids=[EXISTING_LUSTRE["fsx_lustre_security_group"]],
)
TARGET = MountTarget(
    zone_id=SUBNET.zone_id,
    vpc_id=VPC.vpc_id,
    state="available",
    security_group_ids=[EXISTING_EFS["efs_security_group"]],
)
EFS = EfsFileSystem(file_system_id=EXISTING_EFS["efs"], state="available", mount_targets=(TARGET,))

SERVICES = "/aws/service/global-infrastructure/regions/"


@dataclass(kw_only=True)
class FakeFileSystems:
    found_lustre: FsxFileSystem | None = LUSTRE
    found_efs: EfsFileSystem | None = EFS
    services: tuple[str, ...] = ("fsx-lustre", "efs")

    @property
    def storage(self) -> Self:
        return self

    def fsx_file_system(self, file_system_id: str) -> FsxFileSystem | None:
        assert file_system_id == LUSTRE.file_system_id
        self._check_available("lustre")
        return self.found_lustre

    def efs_file_system(self, file_system_id: str) -> EfsFileSystem | None:
        assert file_system_id == EFS.file_system_id
        self._check_available("efs")
        return self.found_efs

    def service_of_the_region(self, parameter: str) -> str | None:
        region, _, service = parameter.removeprefix(SERVICES).partition("/services/")
        assert region == "us-west-2"
        self._check_available("services")
        return service if service in self.services else None
