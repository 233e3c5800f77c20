"""A compile cache on a node, filled from S3 and written back to it: Python 3.8 or later, standard library only.

It does not depend on jobs: the caller fills the folder before the compiler runs, stores new entries during the run and
at its end, and reads the usage.
"""
