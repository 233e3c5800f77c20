"""Finds what a cluster left in an account, and what that costs. Read-only."""
