"""The node lab: boots real nodes with the user data from the embedded AWS. See docs/project/node-lab.md."""
