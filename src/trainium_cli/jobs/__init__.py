"""Commands about the jobs of a cluster."""
