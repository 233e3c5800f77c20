"""One attempt of a job on one node: Python 3.8 or later, standard library and `trn_node` only.

`python3 -m trn_job LAUNCH_FILE` runs it. The launch file has its rank and the addresses of the others, so it does not
depend on what started it: the watch of a plain cluster, Slurm or AWS Batch.
"""
