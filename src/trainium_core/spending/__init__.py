"""What a cluster has cost until now, costs now, and will have cost at its end."""
