"""The instance types of data/instance_types.toml, and the Neuron software that runs on them."""
