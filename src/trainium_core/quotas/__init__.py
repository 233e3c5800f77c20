"""Quotas: what a plan needs, what the account uses, and requests for increases."""
