"""The instance types, and the Neuron software that runs on them."""
