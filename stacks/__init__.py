"""The stacks of this repository's app."""
