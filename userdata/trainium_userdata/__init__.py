"""User data, and the programs of a node: setup, verification and reports."""
