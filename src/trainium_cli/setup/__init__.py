"""Commands for this machine and for looking things up."""
