"""Whether an account may have budgets of AWS Budgets."""

from typing import Protocol

from trainium_runtime.errors import UnavailableError


class BudgetsDeniedError(UnavailableError):
    """The signed-in user may not read budgets, for want of the permission or of IAM access to billing."""


class Budgets(Protocol):
    def budgets_enabled(self, account: str) -> bool:
        """Whether the account may have budgets at all: in an organization, the management account enables them.

        Raises BudgetsDeniedError.
        """
        ...
