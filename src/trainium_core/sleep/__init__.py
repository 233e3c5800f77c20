"""Putting a deployed cluster to sleep."""
