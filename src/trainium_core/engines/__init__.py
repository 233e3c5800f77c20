"""What runs the training: each engine is a package here, with one line in the registry."""
