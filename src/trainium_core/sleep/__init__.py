"""Puts a deployed cluster to sleep, and wakes it."""
