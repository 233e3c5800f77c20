"""A node of Slurm: its part of a job of `trn run`, and the epilog of every job.

Python 3.9 or later, standard library and the node's other packages only.
"""
