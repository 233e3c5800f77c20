"""Reads AWS Budgets."""

from trainium_core.spending.budgets import BudgetsDeniedError
from trainium_runtime.aws_errors import DENIED, error_code, read_errors
from trainium_runtime.aws_service import AwsService
from trainium_runtime.errors import UnavailableError

_NOT_ENABLED = "is a linked account"
"""AWS's message if the account's payer has not enabled budgets (org-formation-cli, pull request 198)."""


class AwsBudgets(AwsService):
    def budgets_enabled(self, account: str) -> bool:
        try:
            with read_errors("budgets:ViewBudget", absent=(_NOT_ENABLED,)):
                self.client("budgets").describe_budgets(AccountId=account, MaxResults=1)
                return True
        except UnavailableError as error:
            if error_code(error.__cause__) in DENIED:
                raise BudgetsDeniedError(error.reason) from error
            raise
        return False
