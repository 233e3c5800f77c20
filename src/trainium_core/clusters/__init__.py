"""All clusters of an account: their stacks, nodes, hourly cost and end."""
