"""Engines run the training. Each is a package here, with one line in the registry."""
