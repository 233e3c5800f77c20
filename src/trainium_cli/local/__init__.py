"""`trn local`: the embedded AWS, which emulates AWS on this machine."""
