"""What preflight asks an account about the nodes of a cluster."""
