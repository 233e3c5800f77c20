"""Training on a cluster: what a job is, where it stands, and what it cost. Engines start it in their own ways."""
