"""Commands for this machine, and for reference data."""
