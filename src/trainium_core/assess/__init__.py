"""What stands between a code base and Trainium, by reading it: nothing is run, imported or sent."""
