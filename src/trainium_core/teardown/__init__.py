"""Destroys a cluster: what belongs to it, the order of deletion, and what is retained."""
