"""Commands for the costs of a plan or a cluster."""
