"""Warns of an encryption key that the service that launches the nodes may not be allowed to use."""

from collections.abc import Iterator

from trainium_core.aws.account import AwsAccount
from trainium_core.plan import Plan
from trainium_runtime.check_result import CheckResult

_AUTO_SCALING = "AWSServiceRoleForAutoScaling"
_PCS = "AWSServiceRoleForPCS"
_IMAGE_BUILDER = "AWSServiceRoleForImageBuilder"
_PAGES = {
    _AUTO_SCALING: 'EC2 Auto Scaling user guide, "Required AWS KMS key policy for use with encrypted volumes"',
    _PCS: 'AWS PCS user guide, "Required KMS key policy for use with encrypted EBS volumes in AWS PCS"',
}


def check_volumes(plan: Plan, account: AwsAccount) -> CheckResult | None:
    """None if the default key of new volumes is the AWS managed key, which all principals of the account may use.

    With a customer managed key whose policy omits the role of the launching service, instances are terminated as they
    start, and EC2 reports only "Client error on launch" (the pages of _PAGES).
    """
    key = account.storage.default_volume_key()
    if key is None:
        return None
    roles = [*_roles(plan)]
    names = " and ".join(roles)
    found = (
        f"the default EBS key of {plan.region} is {key}, a customer managed key: whether {names} may use it is unknown"
    )
    pages = "; ".join(_PAGES[role] for role in roles if role in _PAGES)
    fix = f"make sure that the key's policy allows {names} to use the key and to create grants: {pages}"
    return CheckResult(outcome="warn", found=found, fix=fix)


def _roles(plan: Plan) -> Iterator[str]:
    if "cluster" in plan.stacks:
        yield _AUTO_SCALING
    if "pcs" in plan.stacks:
        yield _PCS
        if plan.pcs.image is None:
            yield _IMAGE_BUILDER
