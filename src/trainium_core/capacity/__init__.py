"""Ways to get a plan's nodes: ranked options, and the purchase of a Capacity Block."""
