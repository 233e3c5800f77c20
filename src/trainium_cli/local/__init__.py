"""`trn local`: an AWS on this machine."""
