"""Lists everything that a cluster can leave behind: one module per service, one listing per kind.

`registry.py` has all listings.
"""
