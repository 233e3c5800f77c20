"""Errors that people meet, with cause and fix: what `trn explain` says, wherever something fails."""
