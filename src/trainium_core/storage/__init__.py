"""Buckets, file systems and volumes that exist already."""
