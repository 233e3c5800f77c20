"""All clusters of an account: their stacks, nodes, cost by the hour and end."""
