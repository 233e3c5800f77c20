"""Training jobs: requests, states and records. Each engine (cluster, Slurm, SageMaker) starts jobs differently."""
