"""Verifies a node of an EKS cluster in a pod, with the image of jobs.

Python 3.9 or later, standard library and the node's other packages only.
"""
