"""Reads a code base and finds what prevents it from running on Trainium. Nothing is run, imported or sent."""
