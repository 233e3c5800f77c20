"""A private S3 bucket that is deleted with its stack and objects, or retained."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

import jsii
from aws_cdk import CfnDeletionPolicy, IStableStringProducer, Lazy, RemovalPolicy, Stack, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from trainium_cdk.cdk_types import Key
from trainium_cdk.justification import justify, justify_wildcards
from trainium_cdk.physical_names import physical_bucket_name
from trainium_cdk.provider import provider
from trainium_runtime.handlers.bucket_content import RESOURCE_TYPE
from trainium_runtime.naming import EMPTY_AT_DELETE_TAG

_UNKNOWN_NAMES = "objects under one prefix; their names are not known at synthesis"


class DisposableBucket(Construct):
    """An encrypted bucket with TLS only and without public access. `bucket` is the CDK object.

    With the removal policy DESTROY, a function first deletes the objects, because S3 deletes only empty buckets. The
    function empties only buckets with the tag trn:empty-at-delete=true. An update that retains the bucket instead
    removes or changes the tag first.
    """

    bucket: s3.Bucket

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        removal_policy: RemovalPolicy = RemovalPolicy.DESTROY,
        lifecycle_rules: Sequence[s3.LifecycleRule] = (),
        sends_events: bool = False,
        versioned: bool = False,
        name: str | None = None,
        purpose: str | None = None,
        encryption_key: Key | None = None,
    ) -> None:
        """
        Args:
            removal_policy: DESTROY deletes the bucket with its objects; RETAIN and RETAIN_ON_UPDATE_OR_DELETE keep it.
                Default: DESTROY.
            lifecycle_rules: When objects expire. Default: never.
            sends_events: Whether S3 sends the bucket's events to EventBridge. Default: False.
            versioned: Whether S3 keeps earlier versions of objects. Default: False.
            name: Name of the bucket, globally unique. Default: chosen by this package or CloudFormation.
            purpose: What the bucket is for, in one word, for a name that the record of the stack can contain. Default:
                CloudFormation chooses the name.
            encryption_key: KMS key of its objects. Default: keys that S3 manages (SSE-S3).
        """
        super().__init__(scope, construct_id)
        key = cast(kms.IKey | None, encryption_key)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            bucket_name=name,
            encryption=s3.BucketEncryption.S3_MANAGED if key is None else s3.BucketEncryption.KMS,
            encryption_key=key,
            bucket_key_enabled=None if key is None else True,
            enforce_ssl=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=list(lifecycle_rules),
            versioned=True if versioned else None,
            removal_policy=removal_policy,
        )
        if name is None and purpose is not None:
            # Not as the parameter bucket_name: other environments could then use the name, where it has another value.
            _cfn_bucket(self.bucket).bucket_name = physical_bucket_name(self, purpose)
            # An aspect that renames the bucket of a deployed stack replaces it.
            _cfn_bucket(self.bucket).cfn_options.update_replace_policy = CfnDeletionPolicy.RETAIN
        if sends_events:
            # The parameter event_bridge_enabled of s3.Bucket would add a custom resource with a function of the CDK.
            _cfn_bucket(self.bucket).notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
                event_bridge_configuration=s3.CfnBucket.EventBridgeConfigurationProperty(event_bridge_enabled=True)
            )
        unlogged = "access logs would need another bucket that outlives the pilot; use CloudTrail data events"
        unversioned = "holds what can be computed again; versions would be billed and outlive a delete"
        skipped = {"CKV_AWS_18": unlogged, **({} if versioned else {"CKV_AWS_21": unversioned})}
        justify(self.bucket, cdk_nag={"S1": unlogged}, checkov=skipped)
        if removal_policy == RemovalPolicy.DESTROY:
            self._empty_at_delete()

    def _empty_at_delete(self) -> None:
        emptied: Any = _Emptied(_cfn_bucket(self.bucket))
        Tags.of(self.bucket).add(EMPTY_AT_DELETE_TAG, Lazy.string(emptied))
        allow_provider(self.bucket, ["s3:ListBucketVersions", "s3:GetBucketTagging"])
        allow_provider(self.bucket, ["s3:DeleteObject", "s3:DeleteObjectVersion"], "*")
        content = provider(Stack.of(self)).custom_resource(
            self,
            "Content",
            resource_type=RESOURCE_TYPE,
            properties={"BucketName": self.bucket.bucket_name},
        )
        # At deletion the function still needs its policy and that of the bucket.
        content.node.add_dependency(self.bucket)


@jsii.implements(IStableStringProducer)
class _Emptied:
    """Whether a bucket is emptied at deletion: not if the app retains it, for example with RemovalPolicies."""

    def __init__(self, bucket: s3.CfnBucket) -> None:
        self._bucket = bucket

    def produce(self) -> str:
        return "true" if self._bucket.cfn_options.deletion_policy == CfnDeletionPolicy.DELETE else "false"


def _cfn_bucket(bucket: s3.Bucket) -> s3.CfnBucket:
    resource = bucket.node.default_child
    assert isinstance(resource, s3.CfnBucket)
    return resource


def allow_provider(bucket: s3.Bucket, actions: Sequence[str], *keys: str) -> None:
    """Allow the provider of the stack to perform actions on a bucket, or on objects with these keys.

    The bucket's own policy allows it, because it lives as long as the bucket: an update that removes one of several
    buckets would take the permissions out of a policy of the function before the bucket is emptied.
    """
    role: Any = iam.ArnPrincipal(provider(Stack.of(bucket)).role.role_arn)
    resources = [named_bucket_arn(bucket, key) for key in keys] or [named_bucket_arn(bucket)]
    bucket.add_to_resource_policy(iam.PolicyStatement(actions=list(actions), resources=resources, principals=[role]))


def named_bucket_arn(bucket: s3.IBucket, key: str | None = None) -> str:
    """The ARN of a bucket, or of its objects.

    Args:
        key: Key of the objects, which may contain wildcards. Default: the bucket itself.
    """
    return _bucket_arn(bucket) if key is None else f"{_bucket_arn(bucket)}/{key}"


@cache
def _bucket_arn(bucket: s3.IBucket) -> str:
    """Cached, because each read is a call to the Node.js process of the CDK."""
    return bucket.bucket_arn


def grant_objects(bucket: s3.IBucket, grantee: iam.IGrantable, *, prefix: str, actions: Sequence[str]) -> iam.Grant:
    """Grant S3 actions on the objects under one prefix of a bucket. `s3:ListBucket` is limited to the prefix.

    For a principal of another account, the bucket's policy is changed too.
    """
    return _grant(bucket, grantee, prefix=prefix, objects=named_bucket_arn(bucket, f"{prefix}/*"), actions=actions)


def allow_objects(bucket: s3.IBucket, role: iam.IRole, actions: Mapping[str, Sequence[str]]) -> None:
    """Allow a role of this package to perform S3 actions on the objects under prefixes of a bucket.

    Args:
        actions: Actions for the objects of each prefix.
    """
    objects = {prefix: named_bucket_arn(bucket, f"{prefix}/*") for prefix in actions}
    justify_wildcards(role, dict.fromkeys(objects.values(), _UNKNOWN_NAMES), of=bucket)
    for prefix, allowed in actions.items():
        _grant(bucket, role, prefix=prefix, objects=objects[prefix], actions=allowed)


def _grant(
    bucket: s3.IBucket, grantee: iam.IGrantable, *, prefix: str, objects: str, actions: Sequence[str]
) -> iam.Grant:
    on_objects = [action for action in actions if action != "s3:ListBucket"]
    resource: Any = bucket  # in jsii a parameter has another name than in the interface
    grant = iam.Grant.add_to_principal_or_resource(
        grantee=grantee, actions=on_objects, resource=resource, resource_arns=[objects]
    )
    if "s3:ListBucket" not in actions:
        return grant
    listing = iam.Grant.add_to_principal_or_resource(
        grantee=grantee,
        actions=["s3:ListBucket"],
        resource=resource,
        resource_arns=[named_bucket_arn(bucket)],
        conditions={"StringLike": {"s3:prefix": [prefix, f"{prefix}/*"]}},
    )
    return grant.combine(listing)
