"""Whose credentials these are."""
