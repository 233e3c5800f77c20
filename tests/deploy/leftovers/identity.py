"""IAM roles, instance profiles, IAM policies, and KMS keys."""

import json
from collections.abc import Mapping

from tests.deploy.leftovers.maker import TRUST, Creator, Maker
from trainium_runtime.naming import CLUSTER_TAG

POLICY = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]}
)


def _role(maker: Maker) -> str:
    name = f"role-of-{maker.cluster}"
    maker.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=TRUST, Tags=maker.tags)
    return name


def _profile(maker: Maker) -> str:
    maker.client("iam").create_instance_profile(InstanceProfileName=maker.name("profile"))
    return maker.name("profile")


def _policy(maker: Maker) -> str:
    maker.client("iam").create_policy(PolicyName=maker.name("policy"), PolicyDocument=POLICY)
    return maker.name("policy")


def _key(maker: Maker) -> str:
    tags = [{"TagKey": CLUSTER_TAG, "TagValue": maker.cluster}]
    return maker.client("kms").create_key(Tags=tags)["KeyMetadata"]["KeyId"]


IDENTITY: Mapping[str, Creator] = {
    "IAM role": _role,
    "instance profile": _profile,
    "IAM policy": _policy,
    "KMS key": _key,
}
