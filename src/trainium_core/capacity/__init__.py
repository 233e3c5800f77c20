"""Ways to get a plan's nodes: ranked offers, and the purchase of a Capacity Block."""
