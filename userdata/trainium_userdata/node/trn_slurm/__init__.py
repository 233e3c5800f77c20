"""The part of a node of Slurm in jobs of `trn run`, and the epilog of every job.

Python 3.9 or later, standard library and the node's other packages only.
"""
