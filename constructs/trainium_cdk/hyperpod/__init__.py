"""A HyperPod cluster."""
