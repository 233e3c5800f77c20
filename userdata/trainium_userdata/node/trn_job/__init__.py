"""One attempt of a job on one node: Python 3.8 or later, standard library and `trn_node` only.

`python3 -m trn_job LAUNCH_FILE` does all of it. It is given its rank and the addresses of the others, and knows nothing
of who found them out: the watch of a plain cluster, Slurm or AWS Batch.
"""
