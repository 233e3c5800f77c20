"""The embedded AWS: moto with its own CloudFormation engine, on loopback.

It deploys clusters without an AWS account.
"""

DEFAULT_PORT = 4599
DEFAULT_REGION = "us-west-2"

CLOCK_PATH = "/_trn_local/clock"
"""GET returns the time.

PUT with an instant such as 2026-12-01T18:00Z moves the clock forward, and returns once all schedules due by then have
run.
"""
CONSOLE_PATH = "/_trn_local/console"
"""PUT to CONSOLE_PATH/<instance ID> sets the output that GetConsoleOutput returns."""
