"""The nodes of a cluster: launch template, group, checks and what the functions need."""
