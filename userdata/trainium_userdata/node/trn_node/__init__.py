"""The node program, `trn-node`: Python 3.9 or later, standard library only, part of the node script."""

__version__ = "1.27.38"
