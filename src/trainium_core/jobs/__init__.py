"""Training jobs: their requests, states and records. Each engine starts jobs in its own way."""
