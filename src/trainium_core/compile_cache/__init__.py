"""The compile cache: where its entries are, what they are, and what can be done with those in S3."""
