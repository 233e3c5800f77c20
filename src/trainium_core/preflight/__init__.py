"""Checks of an account before a deployment. The checks of an engine are in its folder."""
