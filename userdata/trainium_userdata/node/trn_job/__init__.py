"""One attempt of a job on one node: Python 3.9 or later, standard library and the node's other packages only.

On a plain cluster, the watch starts `python3 -m trn_job LAUNCH_FILE`; on a Slurm node, trn_slurm runs the attempt.
The attempt depends on neither, because the launch has the node's rank and the addresses of all nodes.
"""
