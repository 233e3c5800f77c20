"""Ways to get a plan's nodes, ranked, and extensions of its Capacity Block."""
