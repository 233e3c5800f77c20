"""User data, and the programs of a node: setup, verification, reports, jobs, compile caches and Slurm."""
