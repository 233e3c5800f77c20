"""Asks AWS for everything a cluster can leave behind: one module for each service, one listing for each kind.

`registry.py` has them all.
"""
