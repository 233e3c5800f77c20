"""A Slurm cluster on AWS PCS."""
