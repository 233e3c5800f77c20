"""Runs the part of one pod in jobs of `trn run`, on Kubernetes with JobSet.

Python 3.8 or later, standard library and the node's other packages only.
"""
