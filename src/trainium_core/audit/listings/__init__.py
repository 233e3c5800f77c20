"""Listings of the resources that a cluster can leave behind, one per kind.

`registry.py` combines them with the listings of the engines.
"""
