"""Training on a cluster: what a job is, its state, and its cost. Each engine starts jobs in its own way."""
