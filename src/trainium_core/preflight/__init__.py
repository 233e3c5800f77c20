"""The checks of an account before a deployment, in runner.py; those of one engine are in its folder."""
