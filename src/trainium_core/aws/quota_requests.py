"""Requests quota increases from Service Quotas. Only `trn quota request` uses this module."""

from trainium_runtime.aws_errors import error_code, write_errors
from trainium_runtime.aws_quotas import quota_request
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import RequestRefusedError
from trainium_runtime.quota import QuotaRequest

# Service Quotas creates its service-linked role with the first request of an account.
_DEPENDENCY_DENIED = (
    "a permission that the request itself needs is missing, such as iam:CreateServiceLinkedRole for the first request "
    "of an account"
)


class AlreadyRequestedError(Exception):
    """A request for this quota is open. Service Quotas does not accept a second request."""


class AwsQuotaRequests(AwsService):
    """Requests quota increases with boto3's default credentials."""

    def request_increase(self, service: str, code: str, *, desired: float) -> QuotaRequest:
        """Request an increase of a quota.

        Args:
            service: Code of the service.
            code: Code of the quota.
            desired: The new value.

        Raises:
            AlreadyRequestedError: A request for this quota is open.
            RequestRefusedError: Service Quotas refused the request.
        """
        try:
            with write_errors("servicequotas:RequestServiceQuotaIncrease"):
                answer = self.client("service-quotas").request_service_quota_increase(
                    ServiceCode=service, QuotaCode=code, DesiredValue=desired
                )
        except RequestRefusedError as error:
            answered = error_code(error.__cause__)
            if answered == "ResourceAlreadyExistsException":
                raise AlreadyRequestedError(str(error)) from error
            if answered == "DependencyAccessDeniedException":
                raise RequestRefusedError(_DEPENDENCY_DENIED) from error
            raise
        return quota_request(answer["RequestedQuota"])
