"""The scripts of node lifecycle actions, in a versioned bucket of the stack."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_pcs as pcs
from aws_cdk import aws_s3 as s3
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from trainium_cdk.provider import provider
from trainium_cdk.storage.disposable_bucket import DisposableBucket, allow_objects, allow_provider
from trainium_runtime.handlers.script_copy import RESOURCE_TYPE

Group = pcs.CfnComputeNodeGroup

_PREFIX = "scripts"
_TIMEOUT_MINUTES = 5


class LifecycleScripts(Construct):
    """Scripts that nodes of AWS PCS download at boot, each by its version in S3 and its SHA-256.

    A function copies them from the assets of the app, because objects of the bootstrap bucket have no version that is
    known to the template, and `cdk gc` may delete them. `bucket` is the CDK object. Earlier versions stay for rollbacks
    and are deleted with the bucket.
    """

    bucket: s3.Bucket

    def __init__(self, scope: Construct, construct_id: str, *, scripts: Mapping[str, str]) -> None:
        """
        Args:
            scripts: Texts of the scripts by name, such as `verification`. They must not contain CDK tokens.
        """
        super().__init__(scope, construct_id)
        self.bucket = DisposableBucket(self, "Store", versioned=True).bucket
        allow_provider(self.bucket, ["s3:PutObject"], *(_key(name) for name in scripts))
        self._sources = {name: self._add(name, text) for name, text in scripts.items()}

    def _add(self, name: str, text: str) -> Group.ScriptSourceProperty:
        with TemporaryDirectory() as folder:
            file = Path(folder) / f"{name}.sh"
            file.write_bytes(text.encode())
            asset = Asset(self, f"{name.capitalize()}Script", path=str(file))
        function = provider(Stack.of(self))
        function.allow(actions=["s3:GetObject"], resources=[asset.bucket.arn_for_objects(asset.s3_object_key)])
        key, digest = _key(name), hashlib.sha256(text.encode()).hexdigest()
        copied = function.custom_resource(
            self,
            f"{name.capitalize()}Copy",
            resource_type=RESOURCE_TYPE,
            timeout_minutes=_TIMEOUT_MINUTES,
            properties={
                "SourceBucket": asset.s3_bucket_name,
                "SourceKey": asset.s3_object_key,
                "BucketName": self.bucket.bucket_name,
                "Key": key,
                "Sha256": digest,
            },
        )
        copied.node.add_dependency(self.bucket)
        return Group.ScriptSourceProperty(
            script_location=f"s3://{self.bucket.bucket_name}/{key}",
            s3_version_id=copied.get_att_string("VersionId"),
            checksum=digest,
        )

    def actions(self, name: str) -> Group.NodeLifecycleActionsProperty:
        """The actions of a node group: the script runs before Slurm starts, at every boot. If it fails, the node is
        terminated."""
        script = Group.NodeLifecycleScriptProperty(
            name=name,
            script_source=self._sources[name],
            execution_policy="EVERY_BOOT",
            on_error="TERMINATE",
        )
        return Group.NodeLifecycleActionsProperty(
            stages=Group.NodeLifecycleStagesProperty(node_bootstrapped=[script]), script_caching_policy="CACHE_ONCE"
        )

    def url(self, name: str) -> str:
        """S3 URL of a script."""
        return f"s3://{self.bucket.bucket_name}/{_key(name)}"

    def allow_fetching(self, role: iam.IRole) -> None:
        """Allow nodes to download the scripts."""
        allow_objects(self.bucket, role, {_PREFIX: ["s3:GetObject", "s3:GetObjectVersion"]})


def _key(name: str) -> str:
    return f"{_PREFIX}/{name}.sh"
