"""What whoever helps with a deployment needs to see of it, in one archive without secrets."""
