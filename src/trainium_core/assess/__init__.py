"""Finds what prevents a code base from running on Trainium by reading it: nothing is run, imported or sent."""
