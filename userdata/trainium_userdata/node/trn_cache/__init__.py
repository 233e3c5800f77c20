"""A compile cache on a node: Python 3.9 or later, standard library, trainium_wire and trn_node only.

The cache does not depend on jobs. The caller fills the folder from S3 before the compiler runs, stores new entries
during the run and at its end, and reads the usage.
"""
