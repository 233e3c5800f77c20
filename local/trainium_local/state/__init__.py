"""Saving all that the embedded AWS holds, and loading it into another start."""

STATE_PATH = "/_trn_local/state"
"""GET: all of it. PUT: in place of all that is there. To load a state is to run it: for the owner only."""
