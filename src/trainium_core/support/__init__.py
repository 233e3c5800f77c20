"""The support archive: data for diagnosing a deployment. Only logs, which are optional, may contain secrets."""
