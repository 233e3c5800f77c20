"""What runs on a node, as `trn-node`: Python 3.9 or later, standard library only, shipped inside the user data."""

__version__ = "1.22.0"
"""Of the node program."""
