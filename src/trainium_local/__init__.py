"""The embedded AWS: moto behind an honest CloudFormation engine, on loopback, for deploying without an account."""

__version__ = "0.1.0"

DEFAULT_PORT = 4599
DEFAULT_REGION = "us-west-2"
