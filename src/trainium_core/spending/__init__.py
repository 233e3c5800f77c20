"""What a cluster has cost, costs now, and will have cost at its end."""
