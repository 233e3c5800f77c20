"""The instance types of data/instance_types.toml, and the software that runs on them."""
