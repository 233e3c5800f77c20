"""Reads AWS Budgets."""

from trainium_core.facts import facts
from trainium_runtime.aws_errors import DENIED, error_code, read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import UnavailableError

_NOT_ENABLED = "is a linked account"
"""Part of AWS's message if the account's payer has not enabled budgets (org-formation-cli, pull request 198)."""


class AwsBudgets(AwsService):
    def enabled(self, account: str) -> bool:
        """Whether an account can have budgets.

        Raises:
            UnavailableError: A request failed or was denied.
        """
        try:
            with read_errors("budgets:ViewBudget", absent=(_NOT_ENABLED,)):
                self.client("budgets").describe_budgets(AccountId=account, MaxResults=1)
                return True
        except UnavailableError as error:
            if error_code(error.__cause__) not in DENIED:
                raise
            remedy = "request that permission; if you have it, the root user must activate IAM access to billing once "
            remedy += f"for the account: {facts()['budgets']['activate_iam_access']}"
            raise UnavailableError(error.reason, remedy=remedy) from error
        return False
