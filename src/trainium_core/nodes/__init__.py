"""The nodes of a deployed cluster: their groups, records and notices, and what a person does with them."""
