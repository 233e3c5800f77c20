"""The identity of the AWS credentials."""
