"""Asks AWS for a higher quota: the one thing in this package that changes an account."""

from botocore.exceptions import BotoCoreError, ClientError

from trainium_runtime.aws_quotas import quota_request
from trainium_runtime.aws_service import AwsService
from trainium_runtime.quota import QuotaRequest

_DENIED = {
    "AccessDeniedException": "the permission servicequotas:RequestServiceQuotaIncrease is missing",
    # Service Quotas makes its service-linked role with the first request of an account.
    "DependencyAccessDeniedException": "a permission that the request itself needs is missing, such as "
    "iam:CreateServiceLinkedRole for the first request of an account",
}


class AlreadyRequestedError(Exception):
    """A request for this quota is open; Service Quotas takes no second one."""


class RequestRefusedError(Exception):
    """AWS did not take the request; the message says why, and names the permission if one is missing."""


class AwsQuotaRequests(AwsService):
    """Requests for higher quotas, with the credentials that boto3 finds."""

    def ask(self, service: str, code: str, *, desired: float) -> QuotaRequest:
        """Raises AlreadyRequestedError, RequestRefusedError."""
        try:
            answer = self.client("service-quotas").request_service_quota_increase(
                ServiceCode=service, QuotaCode=code, DesiredValue=desired
            )
        except ClientError as error:
            error_code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
            if error_code == "ResourceAlreadyExistsException":
                raise AlreadyRequestedError(message) from error
            raise RequestRefusedError(_DENIED.get(error_code, f"AWS answered {error_code}: {message}")) from error
        except BotoCoreError as error:
            raise RequestRefusedError(str(error)) from error
        return quota_request(answer["RequestedQuota"])
