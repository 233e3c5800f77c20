"""The node program, `trn-node`: Python 3.9 or later, standard library and trainium_wire only."""
