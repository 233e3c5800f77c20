"""Managed policies of IAM, with their versions."""

from typing import Any

from trainium_local.resources.api_resource import ApiResource
from trainium_local.resources.registry import Provisioned, Request


class _ManagedPolicy(ApiResource):
    def call(self, request: Request, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """IAM keeps five versions and refuses a sixth."""
        if operation == "CreatePolicyVersion":
            self._delete_versions(request, arguments["PolicyArn"], keep=3)
        return super().call(request, operation, arguments)

    def delete(self, request: Request, current: Provisioned) -> None:
        self._delete_versions(request, current.physical_id, keep=0)
        super().delete(request, current)

    def _delete_versions(self, request: Request, arn: str, keep: int) -> None:
        """Those that are not the default one, the oldest first."""
        versions = self.call(request, "ListPolicyVersions", {"PolicyArn": arn})["Versions"]
        old = sorted((one for one in versions if not one["IsDefaultVersion"]), key=lambda one: one["CreateDate"])
        for version in old[: max(0, len(old) - keep)]:
            self.call(request, "DeletePolicyVersion", {"PolicyArn": arn, "VersionId": version["VersionId"]})


KINDS = {"AWS::IAM::ManagedPolicy": _ManagedPolicy}
