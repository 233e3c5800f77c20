"""Commands for the jobs of a cluster."""
