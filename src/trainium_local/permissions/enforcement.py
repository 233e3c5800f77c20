"""Refuses requests for which the signer lacks permissions.

The owner of the server has every permission, but assumes only roles that trust the account.
"""

from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.parse import XFormedDict
from moto.core.responses import ActionResult, BaseResponse
from moto.core.utils import get_service_model
from moto.s3.models import s3_backends
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from trainium_local import access
from trainium_local.access import CALLER, Caller
from trainium_local.permissions.policies import Access, allows, refusal, statements
from trainium_local.permissions.principals import Principal, principal, role_principal, trusts
from trainium_local.permissions.requests import AuthorizationRequest, accesses
from trainium_local.signatures import SigningCredentials

_enforced: list[bool] = [False]
_moto_setup_class: Any = BaseResponse.setup_class


class RequestDeniedError(ServiceException):
    """Access denied, with the message of AWS."""


def enforce() -> None:
    """Start to enforce policies. Before this call, everything is permitted."""
    _enforced[:] = [True]


def is_enforced() -> bool:
    """Return whether policies are enforced."""
    return _enforced[0]


def setup_class(response: Any, *args: Any, **more: Any) -> None:
    """Run moto's setup of a request, then check that the request is permitted."""
    _moto_setup_class(response, *args, **more)
    caller = response.normalized_request.environ.get(CALLER)
    action = response._get_action() if _enforced[0] and caller else None
    if not action:
        return
    model: Any = get_service_model(response.boto3_service_name)
    # moto's AWS Batch returns operations in lower case.
    operation = {name.lower(): name for name in model.operation_names}.get(action.lower(), action)
    request = AuthorizationRequest(
        signing_name=model.signing_name,
        operation=operation,
        parameters=_parameters(response, operation),
        members=frozenset(getattr(model.operation_model(operation).input_shape, "members", ())),
        region=response.region,
        account=response.current_account,
    )
    try:
        _refuse(request, caller)
    except RequestDeniedError as denied:
        denied.code = "AccessDeniedException" if "json" in str(model.protocol) else "AccessDenied"
        if request.prefix == "ec2":
            denied.code = "UnauthorizedOperation"
            denied.message = f"You are not authorized to perform this operation. {denied.message}"
        _, headers, body = response.serialized(ActionResult(denied))
        raise HTTPException(response=Response(body, 403, headers)) from None


def stack_credentials(caller: Caller, role_arn: str | None, region: str) -> SigningCredentials | None:
    """Return the credentials that CloudFormation uses: of the role, else of the caller. None means the owner.

    Raises:
        RequestDeniedError: CloudFormation may not assume the role.
    """
    if not _enforced[0] or (caller.is_owner and not role_arn):
        return None
    if not role_arn:
        return access.user_credentials(caller.access_key_id)
    if not trusts(role_arn, frozenset({"cloudformation.amazonaws.com"}), {}):
        raise RequestDeniedError(f"Role {role_arn} is invalid or cannot be assumed")
    return access.role_credentials(role_arn, session="AWSCloudFormation", region=region)


def refuse_invocation_by(credentials: SigningCredentials | None, function: Any) -> None:
    """Raise RequestDeniedError unless the holder of the credentials may invoke the function."""
    identity = credentials and principal(credentials.access_key_id, function.account_id)
    if identity:
        _refuse_unless_one(identity, [_access("lambda:InvokeFunction", function.function_arn, identity.keys)])


def refuse_unless_allowed(credentials: SigningCredentials | None, action: str, account: str) -> None:
    """Raise RequestDeniedError unless the holder of the credentials may perform an action on any resource."""
    identity = credentials and principal(credentials.access_key_id, account)
    if identity:
        _refuse_unless_one(identity, [_access(action, "*", identity.keys)])


def refuse_invocation(function: Any, service: str, source_arn: str) -> None:
    """Raise RequestDeniedError unless the function's policy lets the service invoke it on behalf of the source."""
    keys = {"aws:sourcearn": [source_arn], "aws:sourceaccount": [function.account_id]}
    invoke = _access("lambda:InvokeFunction", function.function_arn, keys)
    if _enforced[0] and not allows(function.policy.statements if function.policy else (), invoke, {service, "*"}):
        raise RequestDeniedError(
            f"{service} is not authorized to perform: {invoke.action} on resource: {invoke.resource} "
            f"because no resource-based policy allows the {invoke.action} action"
        )


def refuse_schedule(schedule: Any, function_arn: str) -> None:
    """Raise RequestDeniedError unless EventBridge Scheduler may assume the role, which may invoke the function."""
    role_arn, service = schedule.target["RoleArn"], "scheduler.amazonaws.com"
    group = schedule.arn.rpartition("/")[0].replace(":schedule/", ":schedule-group/")
    keys = {"aws:sourcearn": [group], "aws:sourceaccount": [role_arn.split(":")[4]]}
    if _enforced[0] and not trusts(role_arn, frozenset({service}), keys):
        raise RequestDeniedError(f"{service} is not authorized to perform: sts:AssumeRole on resource: {role_arn}")
    if _enforced[0]:
        identity = role_principal(role_arn, schedule.name)
        _refuse_unless_one(identity, [_access("lambda:InvokeFunction", function_arn, identity.keys)])


def _refuse(request: AuthorizationRequest, caller: Caller) -> None:
    identity = None if caller.is_owner else principal(caller.access_key_id, request.account)
    trusted = False
    if (request.prefix, request.operation) == ("sts", "AssumeRole"):
        trusted = _trusted_by_name(request, identity)
    if identity and not trusted and request.operation != "GetCallerIdentity":
        for alternatives in accesses(request, identity.keys):
            _refuse_unless_one(identity, alternatives)


def _trusted_by_name(request: AuthorizationRequest, identity: Principal | None) -> bool:
    """Return whether the role's trust policy names the principal, which then needs no permission to assume the role.

    Raises RequestDeniedError if the role does not trust the principal.
    """
    arn, external = str(request.parameters["RoleArn"]), request.parameters.get("ExternalId")
    account = frozenset({request.account, f"arn:aws:iam::{request.account}:root"})
    keys = {**(identity.keys if identity else {}), "sts:externalid": [external] if external else []}
    if identity and trusts(arn, identity.names, keys):
        return True
    if trusts(arn, account, keys):
        return False
    name = identity.arn if identity else f"arn:aws:iam::{request.account}:root"
    raise RequestDeniedError(f"User: {name} is not authorized to perform: sts:AssumeRole on resource: {arn}")


def _refusal(identity: Principal, access: Access) -> str | None:
    """Return why access is denied, or None.

    Within the account of a bucket, the bucket policy alone can allow access.
    """
    reason = refusal(identity.policies, access)
    if reason is None or "explicit deny" in reason or not access.action.startswith("s3:"):
        return reason
    policy = _bucket_policy(identity.arn.split(":")[4], access.resource.rpartition(":")[2].partition("/")[0])
    return None if policy and allows(statements(policy), access, {*identity.names}) else reason


def _bucket_policy(account: str, bucket: str) -> str | None:
    stored = s3_backends[account]["aws"].buckets.get(bucket)
    return stored.policy.decode() if stored and stored.policy else None


def _refuse_unless_one(identity: Principal, alternatives: list[Access]) -> None:
    reasons = [_refusal(identity, alternative) for alternative in alternatives]
    if None not in reasons:
        needed = alternatives[0]
        resource = f'"{needed.resource}"' if needed.action.startswith("s3:") else needed.resource or "*"
        raise RequestDeniedError(
            f"User: {identity.arn} is not authorized to perform: {needed.action} on resource: {resource} {reasons[0]}"
        )


def _access(action: str, resource: str, keys: Any) -> Access:
    return Access(action=action, resource=resource, context=lambda key: keys.get(key, []))


def _parameters(response: Any, operation: str) -> dict[str, Any]:
    """Parse the parameters with botocore's model; moto does this for some services only."""
    before = vars(response).get("params")
    response._get_action = lambda: operation
    try:
        response.parse_parameters(response.normalized_request)
    except Exception:  # the service refuses a request that cannot be parsed
        return {}
    finally:
        del response._get_action
    parameters = response.params
    response.params = before
    return parameters.original_dict() if isinstance(parameters, XFormedDict) else dict(parameters)
