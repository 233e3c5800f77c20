"""The key that EBS encrypts new volumes with, which moto lets one set and not ask."""

from typing import Any

from moto.core.responses import ActionResult


def get_ebs_default_kms_key_id(response: Any) -> ActionResult:
    return ActionResult({"KmsKeyId": response.ec2_backend.default_kms_key_id or "alias/aws/ebs"})
