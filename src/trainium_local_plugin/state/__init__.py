"""Saving all that the embedded AWS holds, and loading it into another start."""
