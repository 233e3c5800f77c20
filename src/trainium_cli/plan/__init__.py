"""Commands for a plan, and for the account that it is deployed to."""
