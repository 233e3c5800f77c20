"""Asks EC2 with which key new volumes are encrypted."""

from trainium_runtime.aws_errors import read_errors
from trainium_runtime.aws_service import AwsService

_ALIAS_OF_AWS = "alias/aws/ebs"


class AwsVolumes(AwsService):
    def default_volume_key(self) -> str | None:
        """The customer's key that new volumes are encrypted with by default; None when it is AWS's."""
        with read_errors("ec2:GetEbsDefaultKmsKeyId"):
            key = self.client("ec2").get_ebs_default_kms_key_id()["KmsKeyId"]
            return None if key.endswith(_ALIAS_OF_AWS) or self._is_of_aws(key) else key
        return None

    def _is_of_aws(self, key: str) -> bool:
        with read_errors("kms:DescribeKey"):
            return self.client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyManager"] == "AWS"
        return False
