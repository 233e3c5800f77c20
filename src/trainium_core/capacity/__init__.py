"""Ways to get the nodes of a plan: what AWS offers, ranked, and the purchase of a Capacity Block."""
