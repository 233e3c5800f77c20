"""The check `budget`: whether the account can have budgets."""

from tests.core.aws_stubs import stubbed
from tests.core.fake_account import FakeAccount
from tests.core.findings import finding_of
from trainium_core.preflight.finding import Finding

ACCOUNT = "123456789012"


def of_budget(account: FakeAccount) -> Finding:
    return finding_of("budget", account, ends="5d", budget_usd=200)


class Refused(FakeAccount):
    """An account with budgets that these credentials may not read."""

    def enabled(self, account: str) -> bool:
        budgets, stub = stubbed("budgets")
        stub.add_client_error("describe_budgets", "AccessDeniedException")
        return budgets.budgets.enabled(account)


def test_denied_budgets_are_unknown_and_name_billing_access() -> None:
    finding = of_budget(Refused())
    assert finding.outcome == "unknown"
    assert "budgets:ViewBudget" in finding.found
    assert "IAM access to billing" in finding.fix


def test_linked_account_without_budgets_is_recognised_by_the_message() -> None:
    account, stub = stubbed("budgets")
    message = "Account 123456789012 is a linked account. To enable budgets for your account, ask the payer account."
    stub.add_client_error("describe_budgets", "AccessDeniedException", message)
    assert account.budgets.enabled(ACCOUNT) is False


def test_account_without_budgets_fails() -> None:
    finding = of_budget(FakeAccount(has_budgets=False))
    assert finding.outcome == "fail"
    assert "management account" in finding.fix
