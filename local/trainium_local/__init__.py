"""The embedded AWS: moto behind an honest CloudFormation engine, on loopback, for deploying without an account."""

DEFAULT_PORT = 4599
DEFAULT_REGION = "us-west-2"
