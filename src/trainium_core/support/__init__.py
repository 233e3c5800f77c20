"""The support archive: data for diagnosing a deployment. Logs may contain secrets, and are optional."""
