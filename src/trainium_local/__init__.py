"""The embedded AWS: moto behind an honest CloudFormation engine, on loopback, for deploying without an account."""

__version__ = "0.1.0"

DEFAULT_PORT = 4599
DEFAULT_REGION = "us-west-2"

CLOCK_PATH = "/_trn_local/clock"
"""GET: the time. PUT, with an instant such as 2026-12-01T18:00Z: put the clock forward, and answer once all schedules
that are due by then have run."""
CONSOLE_PATH = "/_trn_local/console"
"""PUT CONSOLE_PATH/<instance id>: the output that GetConsoleOutput then shows."""
