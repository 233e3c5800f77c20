"""`trn cache`: the compile caches of clusters."""
