"""Known errors with cause and fix, for `trn explain` and for messages of failed jobs, nodes and deployments."""
