"""The cost of a plan."""
