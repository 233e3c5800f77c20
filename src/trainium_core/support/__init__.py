"""The support bundle: what helps to diagnose a deployment, in one archive without secrets."""
