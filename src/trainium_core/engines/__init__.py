"""Engines run the training. Each engine is a package here, and an entry of the registry."""
