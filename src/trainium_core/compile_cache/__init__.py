"""The compile cache: its location, its entries, and operations on it in S3."""
