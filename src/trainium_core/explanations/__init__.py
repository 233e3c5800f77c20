"""Known errors with cause and fix: the explanations of `trn explain`, also used wherever something fails."""
