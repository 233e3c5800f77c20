"""Every symbol of moto that the CloudFormation side replaces, and why. moto is pinned: look here when the pin moves."""

import moto.cloudformation.urls as cloudformation_urls
from moto.cloudtrail.responses import CloudTrailResponse
from moto.core.responses import ActionResult
from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket

from trainium_local.cloudformation.wire import CloudFormationResponse


def _no_trail(_self: CloudTrailResponse) -> ActionResult:
    return ActionResult({"Events": []})


def _no_opinion(_self: FakeBucket, _action: str, _resource: str) -> PermissionResult:
    return PermissionResult.NEUTRAL


#: (where, name, replacement, why)
REPLACED = (
    (
        cloudformation_urls.url_paths,
        "{0}/$",
        CloudFormationResponse.dispatch,
        "moto's engine skips unknown types, swallows failures, gives no outputs and leaves things behind",
    ),
    (
        CloudTrailResponse,
        "lookup_events",
        _no_trail,
        "the CDK CLI asks it why a resource failed; moto answers 500, which costs the CLI half a minute of retries",
    ),
    (
        FakeBucket,
        "get_permission",
        _no_opinion,
        "moto evaluates bucket policies without their conditions: a policy that asks for TLS would deny every upload",
    ),
)


def apply() -> None:
    """Replace them."""
    for where, name, replacement, _why in REPLACED:
        if isinstance(where, dict):
            where[name] = replacement
        else:
            setattr(where, name, replacement)
