"""Runs the part of a Slurm node in jobs of `trn run`, and the epilog of every job.

Python 3.9 or later, standard library and the node's other packages only.
"""
