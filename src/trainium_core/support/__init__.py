"""The support archive: data for diagnosing a deployment, without secrets."""
