"""The node lab: boots nodes for real, from the user data that the embedded AWS hands out: docs/project/node-lab.md."""
