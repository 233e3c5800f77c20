"""The nodes of a deployed cluster: groups, records, notices, and next steps for the user."""
