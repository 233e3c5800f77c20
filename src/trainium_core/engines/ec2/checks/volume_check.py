"""Warns of an encryption key that Auto Scaling may not be allowed to use."""

from trainium_core.aws.account import AwsAccount
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult

_ROLE = "AWSServiceRoleForAutoScaling"


def check_volumes(plan: Plan, account: AwsAccount) -> CheckResult | None:
    """None if the default key of new volumes is the AWS managed key, which all principals of the account may use.

    With a customer managed key whose policy omits Auto Scaling's role, instances are terminated as they start, and EC2
    reports only "Client error on launch" (EC2 Auto Scaling user guide, required KMS key policy for encrypted volumes).
    """
    key = account.storage.default_volume_key()
    if key is None:
        return None
    found = (
        f"the default EBS key of {plan.region} is {key}, a customer managed key: whether {_ROLE} may use it is unknown"
    )
    fix = (
        f"make sure that the key's policy allows {_ROLE} to use the key and to create grants: EC2 Auto Scaling "
        'user guide, "Required AWS KMS key policy for use with encrypted volumes"'
    )
    return CheckResult(outcome="warn", found=found, fix=fix)
