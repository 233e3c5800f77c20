"""The node lab: boots nodes with the user data of clusters. See docs/project/node-lab.md."""
