"""What stands between a plan and its deployment in one account: findings, each with what to do about it."""
