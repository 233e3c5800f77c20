"""The nodes of a cluster: launch template, Auto Scaling group, checks and functions."""
