"""The compile cache: an S3 bucket with compiled graphs, so that a graph is not compiled on each node at each start."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Protocol, cast

from aws_cdk import Duration, IResource, RemovalPolicy, Resource, Stack, Stage, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.checks import (
    check,
    check_bucket_name,
    check_removal_policy,
    check_same_account,
    is_pending,
    refuse,
    whole_duration,
)
from trainium_cdk.grants import granting, warn_about_unchanged_policies
from trainium_cdk.storage.disposable_bucket import DisposableBucket, allow_objects, grant_objects
from trainium_cdk.storage.encryption_key import check_granting_key
from trainium_core.naming import CACHE_PREFIX
from trainium_core.plan.rules.forms import range_problems
from trainium_core.plan.settings_by_key import SETTINGS
from trainium_wire.cache_place import DIRECT, RELEASE_PREFIX

_READING = ("s3:GetObject", "s3:ListBucket")
_WRITING = (*_READING, "s3:PutObject")
_DELETING = ("s3:DeleteObject",)
_DIRECT_PREFIX = f"{CACHE_PREFIX}/{DIRECT}"
"""Prefix of the files that PyTorch/XLA itself stores. Its client deletes its locks."""

_DEFAULT_DAYS: int = SETTINGS["cache_expiration_days"].default


class ICompileCache(IResource, Protocol):
    """A Neuron compile cache, of this app or imported."""

    @property
    def bucket(self) -> s3.IBucket:
        """The bucket."""
        ...

    @property
    def url(self) -> str:
        """S3 URL of the cache, such as s3://bucket/neuron-compile-cache."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether nodes with this cache may only read it."""
        ...

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant permission to read and list compiled graphs.

        Args:
            grantee: A principal, such as a role, a function or a fleet.
        """
        ...

    def grant_read_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant the permissions of nodes: read, write and list compiled graphs, and delete PyTorch/XLA's own files.

        Args:
            grantee: A principal, such as a role, a function or a fleet.
        """
        ...

    def grant_maintenance(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant the permissions of `trn cache clean`: read, list and delete compiled graphs.

        Args:
            grantee: A principal, such as a role for maintenance.
        """
        ...


class CompileCache(Resource):
    """A Neuron compile cache: a new or existing S3 bucket in which nodes share compiled graphs.

    Example:

        key = kms.Key(stack, "Key")
        cache = CompileCache(stack, "Cache", encryption_key=key)
        cache.apply_removal_policy(RemovalPolicy.RETAIN)
        cache.grant_read_write(role)
        cache.grant_read(reader)
        cache.grant_maintenance(maintainer)
        shared = CompileCache.from_compile_cache_attributes(stack, "Shared", bucket_name="shared-cache")
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        bucket: s3.IBucket | None = None,
        bucket_name: str | None = None,
        encryption_key: Key | None = None,
        removal_policy: RemovalPolicy | None = None,
        expiration: Duration | None = None,
        read_only: bool = False,
    ) -> None:
        """
        Args:
            bucket: An existing bucket, whose settings are not changed. Default: a new one.
            bucket_name: Name of a new bucket, for use in another Stage. Default: chosen by CloudFormation.
            encryption_key: KMS key of a new bucket's objects. Default: keys that S3 manages (SSE-S3).
            removal_policy: DESTROY deletes a new bucket with its objects; RETAIN and RETAIN_ON_UPDATE_OR_DELETE keep
                it. Default: DESTROY.
            expiration: Age in whole days, from 1 to 3650, at which the graphs in a new bucket expire, except those that
                PyTorch/XLA itself stores under the prefix `neuron-compile-cache/direct/`. Graphs of old compiler
                versions are never read again. Default: 90 days.
            read_only: Whether nodes may only read an existing bucket, which others write. Default: False.

        Raises:
            PropsError: Parameters of a new bucket are given with an existing one, `read_only` is given without one, the
                name or the expiration is invalid, the removal policy is SNAPSHOT, or the key is in another region,
                disabled, not SYMMETRIC_DEFAULT, or an imported alias, on which IAM cannot grant permissions.
        """
        super().__init__(scope, construct_id)
        if bucket is not None:
            self._refuse_beside_a_bucket(
                bucket_name=bucket_name,
                encryption_key=encryption_key,
                removal_policy=removal_policy,
                expiration=expiration,
            )
        elif read_only:
            fix = "pass the bucket that others write"
            raise refuse(
                self, "read_only", read_only, allowed="False for a new bucket, which would stay empty", fix=fix
            )
        self._read_only = read_only
        self._bucket = bucket or self._new_bucket(bucket_name, encryption_key, removal_policy, expiration)

    @staticmethod
    def from_compile_cache_attributes(
        scope: Construct,
        construct_id: str,
        *,
        bucket_name: str,
        encryption_key: Key | None = None,
        read_only: bool = False,
    ) -> ICompileCache:
        """Import a compile cache of another app or Stage.

        Args:
            bucket_name: Name of the bucket, which must be in the region of the nodes.
            encryption_key: KMS key of the objects, included in grants. Default: keys that S3 manages (SSE-S3).
            read_only: Whether nodes may only read the cache. Default: False.

        Raises:
            PropsError: The name is invalid, or the key is in another region, disabled, not SYMMETRIC_DEFAULT, or an
                imported alias.
        """
        return _ImportedCache(
            scope, construct_id, bucket_name=bucket_name, encryption_key=encryption_key, read_only=read_only
        )

    @property
    def bucket(self) -> s3.IBucket:
        """The bucket."""
        return self._bucket

    @property
    def read_only(self) -> bool:
        """Whether nodes with this cache may only read it."""
        return self._read_only

    @property
    def url(self) -> str:
        """S3 URL of the cache, such as s3://bucket/neuron-compile-cache."""
        return cache_url(self.bucket.bucket_name)

    def apply_removal_policy(self, policy: RemovalPolicy) -> None:
        """Keep or delete the bucket.

        Args:
            policy: As the parameter `removal_policy`.

        Raises:
            PropsError: The policy is SNAPSHOT.
        """
        check_removal_policy(self, policy)
        self.bucket.apply_removal_policy(policy)

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant permission to read and list compiled graphs, and to use the key.

        Args:
            grantee: A principal, such as a role, a function or a fleet.

        Raises:
            PropsError: The CDK cannot grant permissions to the grantee.
        """
        return self._grant(grantee, {CACHE_PREFIX: _READING})

    def grant_read_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant the permissions of nodes: read, write and list compiled graphs, and use the key.

        Only files that PyTorch/XLA itself stores under the prefix `neuron-compile-cache/direct/`, such as its locks,
        can be deleted.

        Args:
            grantee: A principal, such as a role, a function or a fleet.

        Raises:
            PropsError: The CDK cannot grant permissions to the grantee.
        """
        return self._grant(grantee, {CACHE_PREFIX: _WRITING, _DIRECT_PREFIX: _DELETING}, encrypts=True)

    def grant_maintenance(self, grantee: iam.IGrantable) -> iam.Grant:
        """Grant the permissions of `trn cache clean`: read, list and delete compiled graphs, and use the key.

        Args:
            grantee: A principal, such as a role for maintenance.

        Raises:
            PropsError: The CDK cannot grant permissions to the grantee.
        """
        return self._grant(grantee, {CACHE_PREFIX: (*_READING, *_DELETING)})

    def _grant(
        self, grantee: iam.IGrantable, actions: Mapping[str, Sequence[str]], *, encrypts: bool = False
    ) -> iam.Grant:
        key = self.bucket.encryption_key
        with granting(self, grantee):
            grants = [grant_objects(self.bucket, grantee, prefix=prefix, actions=of) for prefix, of in actions.items()]
            warn_about_unchanged_policies(self, grants[0], self.bucket)
            if key is not None:
                grants.append(key.grant_encrypt_decrypt(grantee) if encrypts else key.grant_decrypt(grantee))
        return reduce(iam.Grant.combine, grants)

    def _new_bucket(
        self,
        bucket_name: str | None,
        encryption_key: Key | None,
        removal_policy: RemovalPolicy | None,
        expiration: Duration | None,
    ) -> s3.IBucket:
        check_granting_key(self, "encryption_key", encryption_key)
        check_removal_policy(self, removal_policy)
        check_bucket_name(self, "bucket_name", bucket_name)
        if is_pending(bucket_name):
            bucket_name = None  # s3.Bucket would refuse the placeholder
        rules = [
            # An entry below this prefix is one object. An entry that PyTorch/XLA itself writes has several objects,
            # some of which could expire a day before the others; `trn cache clean` deletes such old entries.
            s3.LifecycleRule(
                prefix=f"{CACHE_PREFIX}/{RELEASE_PREFIX}",
                expiration=Duration.days(self._days(expiration)),
            ),
            s3.LifecycleRule(prefix=f"{CACHE_PREFIX}/", abort_incomplete_multipart_upload_after=Duration.days(1)),
        ]
        store = DisposableBucket(
            self,
            "Store",
            name=bucket_name,
            purpose="cache",
            removal_policy=removal_policy or RemovalPolicy.DESTROY,
            lifecycle_rules=rules,
            encryption_key=encryption_key,
        )
        return store.bucket

    def _days(self, expiration: Duration | None) -> int:
        if expiration is None:
            return _DEFAULT_DAYS
        days = whole_duration(self, "expiration", expiration, "days")
        check(self, range_problems("cache_expiration_days", days, "days", field="expiration"))
        return days

    def _refuse_beside_a_bucket(self, **parameters: object) -> None:
        for parameter, value in parameters.items():
            if value is not None:
                raise refuse(
                    self,
                    parameter,
                    value,
                    allowed="nothing together with an existing bucket",
                    fix=f"remove {parameter}, because an existing bucket is not changed; or bucket, for a new one"
                    if parameter != "encryption_key"
                    else "import the bucket with its key: s3.Bucket.from_bucket_attributes(..., encryption_key=key)",
                )


class _ImportedCache(CompileCache):
    """An imported cache."""

    def __init__(
        self, scope: Construct, construct_id: str, *, bucket_name: str, encryption_key: Key | None, read_only: bool
    ) -> None:
        Resource.__init__(self, scope, construct_id)
        self._read_only = read_only
        check_bucket_name(self, "bucket_name", bucket_name)
        check_granting_key(self, "encryption_key", encryption_key)
        key = cast(kms.IKey | None, encryption_key)
        self._bucket = s3.Bucket.from_bucket_attributes(self, "Bucket", bucket_name=bucket_name, encryption_key=key)


def cache_url(bucket: str) -> str:
    """The S3 URL of the cache in a bucket."""
    return f"s3://{bucket}/{CACHE_PREFIX}"


def allow_cache(cache: ICompileCache, role: iam.IRole) -> None:
    """Grant a role of this package the permissions of `grant_read_write`, or of `grant_read` on a read-only cache.

    Permissions on the key are not included.
    """
    writing = {CACHE_PREFIX: _WRITING, _DIRECT_PREFIX: _DELETING}
    allow_objects(cache.bucket, role, {CACHE_PREFIX: _READING} if cache.read_only else writing)


def allow_cache_key(cache: ICompileCache, role: iam.IRole) -> None:
    """Allow a role to use the KMS key of the bucket, if the bucket has one."""
    key = cache.bucket.encryption_key
    if key is not None and cache.read_only:
        key.grant_decrypt(role)
    elif key is not None:
        key.grant_encrypt_decrypt(role)


def check_cache(construct: Construct, cache: ICompileCache | None) -> None:
    """Raise PropsError if the cache is in another Stage, account or region than the construct."""
    if cache is None:
        return
    if Stage.of(cache.bucket) is not Stage.of(construct):
        raise refuse(
            construct,
            "cache",
            cache.node.path,
            allowed="a cache of the same Stage",
            fix="set a bucket_name for the cache, and import it with CompileCache.from_compile_cache_attributes(...)",
        )
    check_same_account(construct, "cache", cache.bucket, what="a cache")
    region, own = cache.bucket.env.region, Stack.of(construct).region
    if not Token.is_unresolved(region) and not Token.is_unresolved(own) and region != own:
        raise refuse(
            construct,
            "cache",
            region,
            allowed=f"a cache in {own}, the region of the stack: a gateway endpoint reaches S3 only in its own region",
            fix="create a CompileCache in this stack, or in another stack of the region",
        )
