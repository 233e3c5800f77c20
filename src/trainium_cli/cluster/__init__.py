"""Commands about a deployed cluster."""
