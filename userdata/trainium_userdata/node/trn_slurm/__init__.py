"""A node of Slurm: the epilog of its jobs. Python 3.9 or later, standard library and the node's other packages only."""
