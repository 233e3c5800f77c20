"""Buckets, the compile cache and file systems."""
