"""AWS PCS, which moto lacks: clusters, compute node groups and queues, without Slurm."""
