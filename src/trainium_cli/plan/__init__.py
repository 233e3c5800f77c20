"""Commands about a plan and whether the account can take it."""
