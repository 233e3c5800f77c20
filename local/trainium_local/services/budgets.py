"""What moto lacks of AWS Budgets: the change of a budget."""

from typing import Any

from moto.budgets.exceptions import NotFoundException
from moto.core.utils import unix_time


def update_budget(response: Any) -> str:
    """UpdateBudget, which leaves the notifications as they are."""
    new: dict[str, Any] = response._get_param("NewBudget")
    budgets = response.backend.budgets[response._get_param("AccountId")]
    name = new["BudgetName"]
    if name not in budgets:
        raise NotFoundException(f"Unable to update budget: {name} - the budget doesn't exist.")
    kept = {"TimePeriod": budgets[name].budget["TimePeriod"]}
    budgets[name].budget = {**kept, **new, "LastUpdatedTime": unix_time()}
    return "{}"
