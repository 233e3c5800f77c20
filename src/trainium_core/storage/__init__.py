"""Existing buckets, file systems and volume encryption."""
