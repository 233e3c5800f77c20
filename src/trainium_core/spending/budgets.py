"""Whether an account can use AWS Budgets."""

from typing import Protocol

from trainium_runtime.errors import UnavailableError


class BudgetsDeniedError(UnavailableError):
    """The user may not read budgets: the permission is missing, or IAM access to billing is off."""


class Budgets(Protocol):
    def budgets_enabled(self, account: str) -> bool:
        """Whether the account can have budgets. In an organization, the management account enables them.

        Raises BudgetsDeniedError.
        """
        ...
